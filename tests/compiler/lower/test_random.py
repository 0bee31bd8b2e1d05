"""Random programs of jumps, guards and memory against an interpreter that knows nothing of the lowering."""

from __future__ import annotations

import random

import lower_rig as rig
import numpy as np
import pytest

THREADS = 32
PROGRAMS = 24
STEPS = 60
"""Blocks a thread may enter before it is sent to the end."""

M32 = 0xFFFFFFFF
CONSTANTS = [0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31, 64, 255, 1000, -4, -1, 0x7FFFFFFF]

PLAIN = {
    "add": ("add.u32 {d}, {a}, {e}", lambda a, e, c, t: a + e),
    "sub": ("sub.u32 {d}, {a}, {e}", lambda a, e, c, t: a - e),
    "multiply": ("mul.lo.u32 {d}, {a}, {c}", lambda a, e, c, t: a * c),
    "mad": ("mad.lo.u32 {d}, {a}, {c}, {e}", lambda a, e, c, t: a * c + e),
    "left": ("shl.b32 {d}, {a}, {s}", lambda a, e, c, t: a << (c & 7)),
    "right": ("shr.u32 {d}, {a}, {s}", lambda a, e, c, t: a >> (c & 7)),
    "and": ("and.b32 {d}, {a}, {c}", lambda a, e, c, t: a & c),
    "or": ("or.b32 {d}, {a}, {q}", lambda a, e, c, t: a | (c & 3)),
    "xor": ("xor.b32 {d}, {a}, {e}", lambda a, e, c, t: a ^ e),
    "move": ("mov.u32 {d}, {a}", lambda a, e, c, t: a),
    "constant": ("mov.u32 {d}, {c}", lambda a, e, c, t: c),
    "thread": ("add.u32 {d}, {a}, %t", lambda a, e, c, t: a + t),
    "select": ("setp.lt.u32 %p3, {a}, {e}; {g}selp.u32 {d}, {a}, {c}, %p3", lambda a, e, c, t: a if a < e else c),
}
MEMORY = [f"{space} {kind}" for space in ("local", "shared", "global") for kind in ("load", "store")]


class Program:
    """Blocks of operations (kind, d, a, e, constant, guard) and jumps, with a text and a meaning."""

    def __init__(self, seed: int) -> None:
        r = random.Random(seed)
        self.registers, self.size = r.randint(3, 7), r.randint(2, 9)
        self.blocks = [([self._operation(r) for _ in range(r.randint(1, 9))], self._jump(r)) for _ in range(self.size)]

    def _operation(self, r: random.Random) -> tuple:
        d, a, e = (r.randrange(self.registers) for _ in range(3))
        guard = (r.randrange(self.registers), 1 << r.randrange(3), r.random() < 0.5) if r.random() < 0.2 else None
        return r.choice([*PLAIN, *MEMORY]), d, a, e, r.choice(CONSTANTS), guard

    def _jump(self, r: random.Random) -> tuple:
        kind, register, target = r.random(), r.randrange(self.registers), r.randrange(self.size + 1)
        if kind < 0.55:
            return "if", register, 1 << r.randrange(4), target, r.random() < 0.5
        if kind < 0.7:
            return "go", target
        if kind < 0.8:
            return "switch", register, [r.randrange(self.size + 1) for _ in range(4)]
        return ("on",)

    # --- text ---

    def ptx(self, name: str) -> str:
        fill = " ".join(
            f"st.local.u32 [loc+{4 * i}], {11 * i}; st.shared.u32 [%own+{4 * i}], {13 * i};" for i in range(16)
        )
        lines = [
            f".visible .entry {name}(.param .u64 out)\n{{ .reg .u64 %o, %w<9>; .reg .pred %p<9>;",
            f".reg .u32 %t, %count, %own, %x<9>, %r<{self.registers}>;",
            ".local .align 4 .b8 loc[64]; .shared .align 4 .b8 sh[2048];",
            "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %w1, %t, 256; add.u64 %o, %o, %w1;",
            "mov.u32 %count, 0; mov.u64 %w4, loc; mov.u32 %own, sh; mad.lo.u32 %own, %t, 64, %own;",
            fill,
            *(f"mad.lo.u32 %r{i}, %t, {3 * i + 1}, {17 * i};" for i in range(self.registers)),
        ]
        for number, (operations, jump) in enumerate(self.blocks):
            lines.append(
                f"B{number}: add.u32 %count, %count, 1; setp.gt.u32 %p1, %count, {STEPS}; @%p1 bra B{self.size};"
            )
            for operation in operations:
                lines.extend(self._text(*operation))
            lines.append(self._jump_text(number, jump))
        lines.append(f"B{self.size}:")
        lines.extend(f"st.global.u32 [%o+{4 * i}], %r{i};" for i in range(self.registers))
        for i in range(16):
            lines.append(f"ld.local.u32 %x8, [loc+{4 * i}]; st.global.u32 [%o+{64 + 4 * i}], %x8;")
            lines.append(f"ld.shared.u32 %x8, [%own+{4 * i}]; st.global.u32 [%o+{192 + 4 * i}], %x8;")
        return "\n".join([*lines, "ret; }"])

    def _text(self, kind: str, d: int, a: int, e: int, c: int, guard: tuple | None) -> list[str]:
        lines, g = [], ""
        if guard is not None:
            lines.append(f"and.b32 %x2, %r{guard[0]}, {guard[1]}; setp.ne.u32 %p2, %x2, 0;")
            g = "@%p2 " if guard[2] else "@!%p2 "
        if kind in PLAIN:
            text = PLAIN[kind][0].format(d=f"%r{d}", a=f"%r{a}", e=f"%r{e}", c=c, s=c & 7, q=c & 3, g=g)
            lines.append(f"{text};" if kind == "select" else f"{g}{text};")
            return lines
        space, access = kind.split()
        lines.append(f"add.u32 %x3, %r{a}, {c}; and.b32 %x3, %x3, 15;")
        if space == "local":
            lines.append("mul.wide.u32 %w2, %x3, 4; add.u64 %w3, %w4, %w2;")
            place = "%w3"
        elif space == "global":
            lines.append("mul.wide.u32 %w5, %x3, 4; add.u64 %w6, %o, %w5;")
            place = "%w6+128"
        else:
            way, place = [
                ("shl.b32 %x4, %x3, 2; add.u32 %x4, %x4, %own;", "%x4"),
                ("mov.u32 %x5, sh; mad.lo.u32 %x4, %t, 64, %x5; mad.lo.u32 %x4, %x3, 4, %x4;", "%x4"),
                (
                    "mul.lo.u32 %x4, %t, 16; add.u32 %x4, %x4, %x3; shl.b32 %x4, %x4, 2; mov.u32 %x5, sh; "
                    "add.u32 %x4, %x5, %x4; sub.u32 %x4, %x4, 20;",
                    "%x4+20",
                ),
            ][(c + d) % 3]
            lines.append(way)
        if access == "store":
            lines.append(f"{g}st.{space}.u32 [{place}], %r{e};")
        else:
            lines.append(f"{g}ld.{space}.u32 %r{d}, [{place}];")
        return lines

    def _jump_text(self, number: int, jump: tuple) -> str:
        match jump:
            case ("if", register, mask, target, sense):
                guard = "@%p4" if sense else "@!%p4"
                return f"and.b32 %x6, %r{register}, {mask}; setp.ne.u32 %p4, %x6, 0; {guard} bra B{target};"
            case ("go", target):
                return f"bra B{target};"
            case ("switch", register, targets):
                listed = ", ".join(f"B{t}" for t in targets)
                return f"T{number}: .branchtargets {listed}; and.b32 %x7, %r{register}, 3; brx.idx %x7, T{number};"
        return ""

    # --- meaning ---

    def run(self, t: int) -> list[int]:
        r = [t * (3 * i + 1) + 17 * i for i in range(self.registers)]
        memory = {"local": [11 * i for i in range(16)], "shared": [13 * i for i in range(16)], "global": [77] * 16}
        at = count = 0
        while at < self.size and count < STEPS:
            count += 1
            operations, jump = self.blocks[at]
            for kind, d, a, e, c, guard in operations:
                if guard is not None and (r[guard[0]] & guard[1] != 0) != guard[2]:
                    continue
                if kind in PLAIN:
                    r[d] = PLAIN[kind][1](r[a], r[e], c & M32, t) & M32
                    continue
                space, access = kind.split()
                index = (r[a] + c) % 16
                if access == "store":
                    memory[space][index] = r[e]
                else:
                    r[d] = memory[space][index]
            match jump:
                case ("if", register, mask, target, sense):
                    at = target if (r[register] & mask != 0) == sense else at + 1
                case ("go", target):
                    at = target
                case ("switch", register, targets):
                    at = targets[r[register] & 3]
                case _:
                    at += 1
        unused = [77] * (16 - self.registers)
        return [*r, *unused, *memory["local"], *memory["global"], *memory["shared"]]


@pytest.fixture(scope="module")
def module() -> rig.Module:
    return rig.Module(rig.HEADER + "\n".join(Program(seed).ptx(f"k{seed}") for seed in range(PROGRAMS)))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(module: rig.Module, seed: int) -> None:
    o = rig.poisoned(THREADS, 64, dtype=np.uint32)
    module.launch(f"k{seed}", (1,), (THREADS,), [o])
    program = Program(seed)
    for t in range(THREADS):
        assert o[t].tolist() == program.run(t), f"thread {t}"
