"""Threads that leave before barriers: random programs against coroutines that run from barrier to barrier."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field

import lower_rig as rig
import numpy as np
import pytest

from zluda.ptx.errors import PtxUnsupported

THREADS = 64
PROGRAMS = 24
M32 = 0xFFFFFFFF


@dataclass
class Statement:
    """`kind` says which of the numbers mean what; `number` makes labels unique."""

    kind: str
    number: int
    mask: int = 0
    value: int = 0
    flag: bool = False
    other: bool = False
    body: list[Statement] = field(default_factory=list)


class Program:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.body = self._statements(0, True)
        self.body.insert(1, self._new("exchange", value=1))
        self.body.append(self._new("exchange", value=5))

    def _new(self, kind: str, **fields: object) -> Statement:
        self.count += 1
        return Statement(kind, self.count, **fields)  # type: ignore[arg-type]

    def _statements(self, depth: int, barriers: bool) -> list[Statement]:
        r = self.random
        return [self._statement(r.random(), depth, barriers) for _ in range(r.randint(2, 5))]

    def _statement(self, kind: float, depth: int, barriers: bool) -> Statement:
        r = self.random
        yes, perhaps = r.random() < 0.5, r.random() < 0.3
        if kind < 0.22:
            mask, value = r.choice([1, 3, 7, 16, 32, 48, 33]), r.choice([0, 1, 2, 3, 16, 32])
            return self._new("leave", mask=mask, value=value, flag=yes, other=perhaps)
        if kind < 0.32 and depth < 2:
            body = self._statements(depth + 1, False)
            return self._new(
                "if", mask=r.choice([1, 3, 16, 32]), value=r.choice([0, 1, 16, 32]), flag=perhaps, body=body
            )
        if kind < 0.47 and depth < 2:
            return self._new("loop", value=r.randint(1, 3), flag=yes, body=self._statements(depth + 1, barriers))
        if kind < 0.55:
            return self._new("own loop", mask=r.choice([1, 3, 7]))
        if kind < 0.75 and barriers:
            return self._new("exchange", value=r.randint(1, THREADS - 1))
        if kind < 0.8:
            return self._new("store", value=r.randrange(4))
        return self._new("compute", mask=r.randrange(3), value=r.choice([3, 5, 7, 11]))

    # --- text ---

    def ptx(self, name: str) -> str:
        return "\n".join(
            [
                f".visible .entry {name}(.param .u64 out, .param .u64 counts)",
                "{ .reg .u64 %o, %n, %w; .reg .u32 %t, %v;",
                f".shared .align 4 .b8 sh[{4 * THREADS}]; ld.param.u64 %o, [out]; ld.param.u64 %n, [counts];",
                "mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 32; add.u64 %o, %o, %w; mad.lo.u32 %v, %t, 7, 3;",
                "{ .reg .u32 a; mov.u32 a, sh; mad.lo.u32 a, %t, 4, a; st.shared.u32 [a], %t; } bar.sync 0;",
                *(line for s in self.body for line in self._text(s)),
                "st.global.u32 [%o], %v;\nEND: ret; }",
            ]
        )

    def _text(self, s: Statement) -> list[str]:
        n = s.number
        inner = [line for item in s.body for line in self._text(item)]
        match s.kind:
            case "leave":
                tested = "add.u32 a, %t, %v; and.b32 a, a" if s.other else "and.b32 a, %t"
                test = f"{{ .reg .u32 a; .reg .pred p; {tested}, {s.mask}; setp.eq.u32 p, a, {s.value};"
                if s.flag:
                    return [test, f"@!p bra K{n}; st.global.u32 [%o], {5000 + n}; ret; K{n}: }}"]
                return [test, "@p ret; }" if n % 2 else "@p bra END; }"]
            case "if":
                end = f"bra F{n}; E{n}: xor.b32 %v, %v, {n}; F{n}:" if s.flag else f"E{n}:"
                test = f"and.b32 a, %t, {s.mask}; setp.ne.u32 p, a, {s.value}; @p bra E{n};"
                return [f"{{ .reg .u32 a; .reg .pred p; {test} }}", *inner, end]
            case "loop":
                read = f".reg .u32 n{n}; ld.global.u32 n{n}, [%n+{4 * s.value}];" if s.flag else ""
                bound = f"n{n}" if s.flag else s.value
                end = f"add.u32 i{n}, i{n}, 1; setp.lt.u32 q{n}, i{n}, {bound}; @q{n} bra L{n};"
                return [f".reg .u32 i{n}; .reg .pred q{n}; mov.u32 i{n}, 0; {read} L{n}:", *inner, end]
            case "own loop":
                step = f"D{n}: add.u32 %v, %v, a; sub.u32 a, a, 1; setp.gt.s32 p, a, 0; @p bra D{n};"
                return [f"{{ .reg .u32 a; .reg .pred p; and.b32 a, %v, {s.mask}; {step} }}"]
            case "exchange":
                return [
                    "{ .reg .u32 a, b, c; mov.u32 a, sh; mad.lo.u32 a, %t, 4, a; st.shared.u32 [a], %v; bar.sync 0;",
                    f"add.u32 b, %t, {s.value}; and.b32 b, b, {THREADS - 1}; mov.u32 c, sh; mad.lo.u32 c, b, 4, c;",
                    "ld.shared.u32 b, [c]; mad.lo.u32 %v, %v, 3, b; bar.sync 0; }",
                ]
            case "store":
                return [f"st.global.u32 [%o+{4 + 4 * s.value}], %v;"]
        return [[f"add.u32 %v, %v, {s.value};", f"mul.lo.u32 %v, %v, {s.value};", "xor.b32 %v, %v, %t;"][s.mask]]

    # --- meaning ---

    def expected(self) -> list[list[int]]:
        out = [[77] * 8 for _ in range(THREADS)]
        shared = [0] * THREADS
        threads = {t: _thread(self.body, t, out[t], shared) for t in range(THREADS)}
        while threads:
            for t in list(threads):
                if next(threads[t], "ended") == "ended":
                    del threads[t]
        return out


def _thread(body: list[Statement], t: int, out: list[int], shared: list[int]) -> Generator[None, None, None]:
    v = (t * 7 + 3) & M32

    def run(statements: list[Statement]) -> Generator[None, None, bool]:
        nonlocal v
        for s in statements:
            match s.kind:
                case "leave":
                    if ((t + v if s.other else t) & s.mask) == s.value:
                        if s.flag:
                            out[0] = 5000 + s.number
                        return True
                case "if":
                    if t & s.mask == s.value:
                        if (yield from run(s.body)):
                            return True
                    elif s.flag:
                        v ^= s.number
                case "loop":
                    for _ in range(s.value):
                        if (yield from run(s.body)):
                            return True
                case "own loop":
                    a = v & s.mask
                    v = (v + (a * (a + 1) // 2)) & M32
                case "exchange":
                    shared[t] = v
                    yield
                    v = (v * 3 + shared[(t + s.value) % THREADS]) & M32
                    yield
                case "store":
                    out[1 + s.value] = v
                case _:
                    v = [v + s.value, v * s.value, v ^ t][s.mask] & M32
        return False

    shared[t] = t
    yield
    if not (yield from run(body)):
        out[0] = v


@pytest.fixture(scope="module")
def module() -> rig.Module:
    return rig.Module(rig.HEADER + "\n".join(Program(seed).ptx(f"k{seed}") for seed in range(PROGRAMS)))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(module: rig.Module, seed: int) -> None:
    o = rig.poisoned(THREADS, 8, dtype=np.uint32)
    counts = rig.aligned(np.arange(4, dtype=np.uint32))
    program = Program(seed)
    module.launch(f"k{seed}", (1,), (THREADS,), [o, counts])
    assert o.tolist() == program.expected()


def test_programs_have_threads_that_leave() -> None:
    outs = [Program(seed).expected() for seed in range(PROGRAMS)]
    assert sum(0 < sum(o[0] == 77 or 5000 <= o[0] < 5100 for o in out) < THREADS for out in outs) > PROGRAMS // 3


def test_reduction_over_the_threads_that_stay() -> None:
    text = """.visible .entry k(.param .u64 out)
    { .reg .u64 %o, %w; .reg .u32 %t, %n, %a; .reg .pred %p, %q;
      ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 16; add.u64 %o, %o, %w;
      setp.ge.u32 %p, %t, 40; @%p ret;
      and.b32 %a, %t, 1; setp.eq.u32 %p, %a, 0; barrier.red.popc.u32 %n, 0, %p; st.global.u32 [%o], %n;
      setp.lt.u32 %p, %t, 40; barrier.red.and.pred %q, 0, %p; selp.u32 %n, 1, 0, %q; st.global.u32 [%o+4], %n;
      setp.ge.u32 %p, %t, 40; barrier.red.or.pred %q, 0, %p; selp.u32 %n, 1, 0, %q; st.global.u32 [%o+8], %n; ret; }
    """
    o = rig.poisoned(64, 4)
    rig.Module(rig.HEADER + text).launch("k", (1,), (64,), [o])
    assert o.tolist() == [[20, 1, 0, 77] if t < 40 else [77] * 4 for t in range(64)]


def test_what_cannot_be_kept_together_is_refused() -> None:
    text = """.visible .entry k(.param .u32 n)
    { .reg .u32 %t, %i, %n; .reg .pred %p; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 3; @%p ret;
      mov.u32 %i, %t;
    L: bar.sync 0; add.u32 %i, %i, 32; setp.lt.u32 %p, %i, %n; @%p bra L; ret; }
    """
    with pytest.raises(PtxUnsupported, match="a barrier on a way that not all threads take"):
        rig.lowered(rig.HEADER + text, "k")
