"""Random PTX programs: arithmetic, predicates, branches and loops; small enough to read when one fails."""

from __future__ import annotations

import random

BLOCKS = (32, 33, 100, 256)
CELLS = 8
"""32-bit results of each thread."""


class Writer:
    """One random kernel. Registers keep their types; every value is defined before the first branch."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = name
        self.lines: list[str] = []
        self.labels = 0
        self.depth = 0

    def reg(self, kind: str) -> str:
        return f"%{kind}{self.rng.randrange(8 if kind == 'r' else 4)}"

    def value(self, kind: str) -> str:
        """A register or a constant."""
        if self.rng.random() < 0.8:
            return self.reg(kind)
        if kind == "f":
            return "0f" + self.rng.choice(
                ["3f800000", "bf000000", "40490fdb", "7f7fffff", "00000001", "80000000", "7f800000"]
            )
        if kind == "s":
            return str(self.rng.randint(-32768, 32767))
        return str(
            self.rng.choice([0, 1, -1, 31, 255, 65536, 2147483647, -2147483648, self.rng.randint(-99999, 99999)])
        )

    def emit(self, text: str) -> None:
        guard = f"@{self.rng.choice(['', '!'])}%p{self.rng.randrange(4)} " if self.rng.random() < 0.15 else ""
        self.lines.append(f"{guard}{text};")

    def integer(self) -> None:
        r, v, rng = self.reg, self.value, self.rng
        u = rng.choice(["u32", "s32"])
        choices = [
            lambda: f"{rng.choice(['add', 'sub', 'min', 'max', 'mul.lo', 'mul.hi'])}.{u} {r('r')}, {r('r')}, {v('r')}",
            lambda: f"{rng.choice(['and', 'or', 'xor'])}.b32 {r('r')}, {r('r')}, {v('r')}",
            lambda: f"mad.{rng.choice(['lo', 'hi'])}.{u} {r('r')}, {r('r')}, {v('r')}, {r('r')}",
            lambda: f"{rng.choice(['shl.b32', 'shr.u32', 'shr.s32'])} {r('r')}, {r('r')}, {v('r')}",
            lambda: (
                f"shf.{rng.choice('lr')}.{rng.choice(['wrap', 'clamp'])}.b32 {r('r')}, {r('r')}, {r('r')}, {v('r')}"
            ),
            lambda: f"{rng.choice(['popc', 'clz', 'brev', 'not', 'cnot'])}.b32 {r('r')}, {r('r')}",
            lambda: f"bfe.{u} {r('r')}, {r('r')}, {v('r')}, {v('r')}",
            lambda: f"bfi.b32 {r('r')}, {r('r')}, {r('r')}, {v('r')}, {v('r')}",
            lambda: f"bfind.{u} {r('r')}, {r('r')}",
            lambda: f"prmt.b32 {r('r')}, {r('r')}, {r('r')}, {rng.choice([r('r'), hex(rng.getrandbits(16))])}",
            lambda: f"lop3.b32 {r('r')}, {r('r')}, {r('r')}, {r('r')}, {rng.randrange(256)}",
            lambda: f"sad.{u} {r('r')}, {r('r')}, {v('r')}, {r('r')}",
            lambda: f"selp.b32 {r('r')}, {r('r')}, {v('r')}, {r('p')}",
            lambda: f"slct.b32.s32 {r('r')}, {r('r')}, {r('r')}, {r('r')}",
            lambda: f"abs.s32 {r('r')}, {r('r')}",
            lambda: f"dp4a.{u}.s32 {r('r')}, {r('r')}, {r('r')}, {r('r')}",
            lambda: f"mul.wide.{u} {r('d')}, {r('r')}, {v('r')}",
            lambda: (
                f"{rng.choice(['add', 'sub', 'mul.lo', 'mul.hi', 'min', 'max'])}.{u[0]}64 {r('d')}, {r('d')}, {r('d')}"
            ),
            lambda: f"{rng.choice(['shl.b64', 'shr.u64', 'shr.s64'])} {r('d')}, {r('d')}, {v('r')}",
            lambda: f"cvt.{u[0]}64.{rng.choice(['u32', 's32', 's8', 'u16'])} {r('d')}, {r('r')}",
            lambda: f"cvt.{u}.{rng.choice(['u64', 's64'])} {r('r')}, {r('d')}",
            lambda: f"cvt.sat.{u}.s64 {r('r')}, {r('d')}",
            lambda: f"add.cc.u32 {r('r')}, {r('r')}, {v('r')};\n addc.u32 {r('r')}, {r('r')}, {v('r')}",
            lambda: f"mul.wide.{u[0]}16 {r('r')}, {r('s')}, {v('s')}",
            lambda: f"{rng.choice(['add', 'sub', 'mul.lo', 'min', 'max'])}.{u[0]}16 {r('s')}, {r('s')}, {v('s')}",
            lambda: f"cvt.{u[0]}16.{rng.choice(['u32', 's8', 's32'])} {r('s')}, {r('r')}",
            lambda: f"cvt.{u}.{rng.choice(['u16', 's16', 's8'])} {r('r')}, {r('s')}",
            lambda: f"or.b32 %q, {r('r')}, 1;\n {rng.choice(['div', 'rem'])}.u32 {r('r')}, {r('r')}, %q",
            lambda: (
                f"and.b32 %q, {r('r')}, 0x7fff;\n add.u32 %q, %q, 1;\n "
                f"{rng.choice(['div', 'rem'])}.s32 {r('r')}, {r('r')}, %q"
            ),
            lambda: f"mov.b64 {r('d')}, {{{r('r')}, {r('r')}}}",
            lambda: f"mov.b64 {{{r('r')}, {r('r')}}}, {r('d')}",
        ]
        text = rng.choice(choices)()
        if "\n" in text:
            self.lines.append(text + ";")
        else:
            self.emit(text)

    def floating(self) -> None:
        r, v, rng = self.reg, self.value, self.rng
        mode = rng.choice(["rn", "rn", "rn", "rz", "rm", "rp"])
        flags = rng.choice(["", "", ".ftz", ".sat"])
        choices = [
            lambda: f"{rng.choice(['add', 'sub', 'mul'])}.{mode}{flags}.f32 {r('f')}, {r('f')}, {v('f')}",
            lambda: f"fma.{mode}{flags}.f32 {r('f')}, {r('f')}, {r('f')}, {v('f')}",
            lambda: f"{rng.choice(['min', 'max'])}.f32 {r('f')}, {r('f')}, {v('f')}",
            lambda: f"{rng.choice(['abs', 'neg'])}{rng.choice(['', '.ftz'])}.f32 {r('f')}, {r('f')}",
            lambda: f"div.rn.f32 {r('f')}, {r('f')}, {v('f')}",
            lambda: f"sqrt.rn.f32 {r('f')}, {r('f')}",
            lambda: f"cvt.{mode}.f32.{rng.choice(['s32', 'u32'])} {r('f')}, {r('r')}",
            lambda: f"cvt.{mode}i.{rng.choice(['s32', 'u32'])}.f32 {r('r')}, {r('f')}",
            lambda: f"cvt.{mode}i.f32.f32 {r('f')}, {r('f')}",
            lambda: f"selp.f32 {r('f')}, {r('f')}, {v('f')}, {r('p')}",
            # No copysign: the ISA leaves the sign of a NaN open.
            lambda: (
                f"set.{rng.choice(['lt', 'geu', 'nan'])}.{rng.choice(['u32', 's32'])}.f32 {r('r')}, {r('f')}, {v('f')}"
            ),
        ]
        self.emit(rng.choice(choices)())

    def predicate(self) -> None:
        r, v, rng = self.reg, self.value, self.rng
        relation = rng.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        kind = rng.choice(["u32", "s32", "s32", "f32", "u64", "s16"])
        letter = {"f32": "f", "u64": "d", "s16": "s"}.get(kind, "r")
        if kind == "f32" and rng.random() < 0.4:
            relation = rng.choice(["equ", "neu", "ltu", "geu", "num", "nan"])
        second = r(letter) if kind == "u64" else v(letter)
        boolean, extra = rng.choice(
            [("", ""), ("", ""), (".and", f", {r('p')}"), (".xor", f", !{r('p')}"), (".or", f", {r('p')}")]
        )
        target = r("p")
        if rng.random() < 0.2:
            other = r("p")
            if other != target:
                target += f"|{other}"
        text = f"setp.{relation}{boolean}.{kind} {target}, {r(letter)}, {second}{extra}"
        logic = f"{rng.choice(['and', 'or', 'xor'])}.pred {r('p')}, {r('p')}, {r('p')}"
        self.emit(text if rng.random() < 0.8 else logic)

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    def block(self, length: int) -> None:
        rng = self.rng
        for _ in range(length):
            what = rng.random()
            if what < 0.5 or self.depth > 2:
                self.integer()
            elif what < 0.7:
                self.floating()
            elif what < 0.82:
                self.predicate()
            elif what < 0.9:
                self.branch()
            elif what < 0.94:
                self.loop()
            else:
                self.memory()

    def branch(self) -> None:
        self.depth += 1
        other, end = self.label(), self.label()
        guard = f"@{self.rng.choice(['', '!'])}%p{self.rng.randrange(4)}"
        self.lines.append(f"{guard} bra {other};")
        self.block(self.rng.randint(1, 5))
        if self.rng.random() < 0.5:
            self.lines += [f"bra {end};", f"{other}:"]
            self.block(self.rng.randint(1, 5))
            self.lines.append(f"{end}:")
        else:
            self.lines.append(f"{other}:")
        self.depth -= 1

    def loop(self) -> None:
        self.depth += 1
        counter, start, end = f"%c{self.depth}", self.label(), self.label()
        bound = self.rng.choice([f"{self.rng.randint(1, 5)}", "%bound"])
        self.lines += [f"mov.u32 {counter}, 0;", f"{start}:"]
        self.block(self.rng.randint(1, 4))
        if self.rng.random() < 0.3:
            self.lines.append(f"@%p{self.rng.randrange(4)} bra {end};")
            self.block(self.rng.randint(1, 2))
        self.lines += [f"add.u32 {counter}, {counter}, 1;", f"setp.lt.u32 %loop, {counter}, {bound};"]
        self.lines += [f"@%loop bra {start};", f"{end}:"]
        self.depth -= 1

    def memory(self) -> None:
        """A cell of the thread's own, at an index it computed."""
        size = self.rng.choice(["u8", "s8", "u16", "s16", "b32"])
        step = {"8": 1, "6": 2, "2": 4}[size[-1]]
        self.lines.append(
            f"and.b32 %q, {self.reg('r')}, {28 + 4 - step};\n cvt.u64.u32 %x, %q;\n add.u64 %x, %own, %x;"
        )
        store = self.rng.random() < 0.5
        plain = size.replace("s", "u") if store else size
        target = self.reg("r")
        self.lines.append(f"st.global.{plain} [%x], {target};" if store else f"ld.global.{size} {target}, [%x];")

    def text(self, length: int) -> str:
        head = [
            f".visible .entry {self.name}(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n)",
            "{",
            ".reg .b32 %r<8>, %i, %j, %k, %n, %q, %c1, %c2, %c3, %c4, %bound;",
            ".reg .b64 %d<4>, %own, %x, %src; .reg .b16 %s<4>; .reg .f32 %f<4>; .reg .pred %p<4>, %loop, %out;",
            "ld.param.u64 %src, [p_in]; ld.param.u64 %own, [p_out]; ld.param.u32 %n, [p_n];",
            "mov.u32 %i, %ctaid.x; mov.u32 %j, %ntid.x; mov.u32 %k, %tid.x;",
            "mad.lo.u32 %i, %i, %j, %k;",
            "setp.ge.u32 %out, %i, %n;",
            "@%out bra $end;",
            "mul.wide.u32 %x, %i, 32; add.u64 %src, %src, %x; add.u64 %own, %own, %x;",
            "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%src];",
            "ld.global.v2.f32 {%f0, %f1}, [%src+16]; ld.global.u64 %d0, [%src+24];",
            "and.b32 %bound, %r0, 3; add.u32 %bound, %bound, 1;",
            "mov.b32 %r4, %i; xor.b32 %r5, %r1, %r2; mov.b32 %r6, 12345; mov.b32 %r7, %k;",
            "neg.f32 %f2, %f0; cvt.rn.f32.s32 %f3, %r3; not.b64 %d1, %d0;",
            "mov.b64 %d2, {%r1, %r2}; cvt.s64.s32 %d3, %r3;",
            "cvt.u16.u32 %s0, %r0; cvt.u16.u32 %s1, %r1; cvt.u16.u32 %s2, %r2; cvt.u16.u32 %s3, %r3;",
            "setp.lt.s32 %p0, %r0, %r1; setp.gt.f32 %p1, %f0, %f1; setp.eq.u32 %p2, %i, 5; setp.ne.u32 %p3, %r2, 0;",
        ]
        self.block(length)
        # Floats of the end: as patterns, every NaN alike.
        tail = []
        for i in range(4):
            tail += [f"setp.nan.f32 %loop, %f{i}, %f{i}; mov.b32 %q, %f{i};", "selp.b32 %q, 0x7fffffff, %q, %loop;"]
            tail += [f"xor.b32 %r{i}, %r{i}, %q;"]
        tail += ["cvt.u32.u16 %q, %s0; xor.b32 %r4, %r4, %q; cvt.u32.u16 %q, %s3; xor.b32 %r5, %r5, %q;"]
        tail += ["xor.b64 %d0, %d0, %d1; xor.b64 %d2, %d2, %d3; selp.u32 %q, 1, 0, %p0; xor.b32 %r6, %r6, %q;"]
        tail += ["xor.b64 %d0, %d0, %d2; mov.b64 {%q, %bound}, %d0; xor.b32 %r6, %r6, %q; xor.b32 %r7, %r7, %bound;"]
        tail += ["ld.global.u32 %q, [%own+4]; xor.b32 %r1, %r1, %q;"]
        tail += ["st.global.v4.b32 [%own], {%r0, %r1, %r2, %r3}; st.global.v4.b32 [%own+16], {%r4, %r5, %r6, %r7};"]
        return "\n".join([*head, *self.lines, *tail, "$end: ret;", "}"]) + "\n"


def program(seed: int, name: str = "k") -> tuple[str, int]:
    """PTX of a kernel, and the block it is launched with."""
    writer = Writer(name, seed)
    length = writer.rng.randint(8, 40)
    return writer.text(length), writer.rng.choice(BLOCKS)
