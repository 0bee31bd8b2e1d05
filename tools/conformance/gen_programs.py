"""Calls, control flow, special registers (PTX ISA 9.7.12, 10): calls.ptx, control.ptx and special.ptx told again."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import _ieee as ieee
from _build import CaseFile, changed, signed, source, target, value
from _ieee import F32, F64

FULL = 0xFFFFFFFF
CALL, BRANCH = "9.7.12.5", "9.7.12.3"


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def generate() -> list[CaseFile]:
    calls, control, special = CaseFile("calls"), CaseFile("control"), CaseFile("special")
    simple_calls(calls)
    structures(calls)
    deep_calls(calls)
    indirect_calls(calls)
    guards(control)
    loops(control)
    graphs(control)
    machine(control)
    triangles(control)
    registers(special)
    return [calls, control, special]


# --- calls ------------------------------------------------------------------------------------------------


def simple_calls(file: CaseFile) -> None:
    rng = random.Random("calls")
    a = [rng.getrandbits(32) for _ in range(32)]
    file.add("simple", "calls", "simple",
             [source("b32", a, "in"), target("b32", [x + t + 1000 & FULL for t, x in enumerate(a)], "sums"),
              target("f64", [F64.of(1.5 * t) for t in range(32)], "products")],
             block=(32,), needs=["fp64"], section=CALL)  # fmt: skip
    file.add("register_form", "calls", "register_form",
             [source("b32", a, "in"), target("b32", [x // (t + 1) + x // 7 & FULL for t, x in enumerate(a)], "out")],
             block=(32,), section=CALL, note="Parameters and results in registers.")  # fmt: skip
    out: list[int] = []
    for t, x in enumerate(a):
        out += divmod(x, t + 3)
    file.add("out_pointer", "calls", "out_pointer", [source("b32", a, "in"), target("b32", out, "out")], block=(32,),
             section=CALL, note="A pointer to local memory goes to the callee.")  # fmt: skip
    products = [signed(x & 0xFF, 8) * signed(x >> 16, 16) & FULL for x in a]
    file.add("narrow", "calls", "narrow", [source("b32", a, "in"), target("b32", products, "out")], block=(32,),
             section=CALL)  # fmt: skip
    filled = [0xA5A5A5A5] * (8 * 16)
    for t in range(16):
        if t != 5:
            filled[8 * t : 8 * t + (t & 7)] = [100 * t + 3 * i for i in range(t & 7)]
    file.add("side_effect", "calls", "side_effect", [target("b32", filled, "out")], block=(16,), section=CALL,
             note="One thread does not call; what the others do not write stays poisoned.")  # fmt: skip


def structures(file: CaseFile) -> None:
    rng = random.Random("structures")
    given, made = b"", b""
    for _ in range(16):
        byte, half, word, wide = rng.getrandbits(8), rng.getrandbits(16), rng.getrandbits(32), rng.getrandbits(64)
        number = F64.of(rng.uniform(-100, 100))
        given += struct.pack("<BxHIQQ", byte, half, word, number, wide)
        double = ieee.add(F64, number, number)
        made += struct.pack("<BxHIQQ", byte + 1 & 0xFF, -half & 0xFFFF, ~word & FULL, double, wide << 1 & (1 << 64) - 1)
    file.add("structures", "calls", "structures",
             [source("b32", words(given), "in"), target("b32", words(made), "out")], block=(16,), needs=["fp64"],
             section=CALL)  # fmt: skip


def deep_calls(file: CaseFile) -> None:
    out: list[int] = []
    product = 1
    for t in range(16):
        product = product * max(t, 1) & FULL
        out += [product, int(t % 2 == 0)]
    file.add("recursion", "calls", "recursion", [target("b32", out, "out")], block=(16,), section=CALL,
             note="Factorials, and two functions that call each other.")  # fmt: skip
    out = []
    for t in range(32):
        total = 0
        for i in range(t + 1):
            if t & 1:
                total = total + (i * i + 1 + i + i * i) & FULL
            else:
                total ^= 2 * i
        out.append(total)
    file.add("nested", "calls", "nested", [target("b32", out, "out")], block=(32,), section=CALL,
             note="Calls in a loop in divergent arms, three functions deep.")  # fmt: skip


def indirect_calls(file: CaseFile) -> None:
    operations = (lambda x: x + 1, lambda x: 2 * x, lambda x: x * x)
    out: list[int] = []
    for t in range(24):
        first = operations[t % 3](t)
        out += [first, first * first if t > 10 else first + 1]
    file.add("indirect", "calls_indirect", "indirect", [target("b32", out, "out")], block=(24,), section=CALL,
             note="Function addresses in a table in memory, and in registers.")  # fmt: skip


# --- control flow -----------------------------------------------------------------------------------------


def guards(file: CaseFile) -> None:
    rng = random.Random("guards")
    a = [rng.getrandbits(32) for _ in range(64)]
    before = [0xC0FFEE00 + t for t in range(64)]
    after = list(before)
    for t in range(64):
        early = t < 40
        x = a[t] if early else 77 + t
        second = t & 3 == 0
        third = (t & 3) != 1 and early
        if second:
            x = x * 5 & FULL
        if third:
            x ^= 0xFF
        else:
            second = x > 100
        if second:
            x = x - 1 & FULL
        if t & 3 != 3:
            after[t] = x if early else 5
        if t <= 60 and t & 3 == 3:
            after[t] = t
    file.add("guards", "control", "guards", [source("b32", a, "in"), changed("b32", before, after, "out")],
             block=(64,), section="9.7.12.2")  # fmt: skip


def loops(file: CaseFile) -> None:
    starts = [0, 1, 2, 3, 7, 27, 97, 871, 6171, 77031, 837799, 2**40 + 1, 2**50, 63728127]
    starts += [random.Random("collatz").getrandbits(20) for _ in range(116)]

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n = 3 * n + 1 if n & 1 else n // 2
            count += 1
        return count

    file.add("collatz", "control", "collatz",
             [source("b64", starts, "in"), target("b32", list(map(steps, starts)), "out"), value("u32", len(starts))],
             grid=(3,), block=(64,), section=BRANCH)  # fmt: skip
    out = []
    for t in range(16):
        x, y, z, before, total = t + 10, t + 2000, t + 300000, 0, 0
        for _ in range(max(t, 1)):
            before = total
            x, y, z = y, z, x
            total += x
        out += [x, y, z, before, total]
    file.add("swaps", "control", "swaps", [target("b32", out, "out")], block=(16,), section=BRANCH)  # fmt: skip
    file.add("scopes", "control", "scopes", [target("b32", [42 + 3 * 41 + t for t in range(16)], "out")],
             block=(16,), section="9.7.12.1",
             note="A name declared in a block hides the one outside.")  # fmt: skip


def graphs(file: CaseFile) -> None:
    file.add("nested_divergence", "control", "nested_divergence",
             [target("b32", [nested_divergence(t) for t in range(64)], "out")],
             block=(64,), section=BRANCH)  # fmt: skip
    file.add("irreducible", "control", "irreducible", [target("b32", [irreducible(t) for t in range(64)], "out")],
             block=(64,), section=BRANCH)  # fmt: skip
    file.add("diamonds", "control", "diamonds", [target("b32", [diamonds(t) & FULL for t in range(64)], "out")],
             block=(64,), section=BRANCH)  # fmt: skip


def nested_divergence(t: int) -> int:
    x = 1
    for outer in range(12):
        kind = t + outer & 3
        if kind == 1:
            continue
        x = x ^ outer if kind == 2 else 3 * x + kind & FULL
        inner, left = 0, False
        while inner <= kind:
            x = x + inner & FULL
            if x & 15 == 7:
                left = True
                break
            if x & 15 > 11:
                x >>= 1
                inner += 2
            else:
                inner += 1
        if left:
            x = x + 1000 & FULL
            if t > 48:
                return x
    return x


def irreducible(t: int) -> int:
    """A machine of states, one for each label."""
    x, i, state = t, 0, "middle" if t & 1 else "top"
    while state != "out":
        if state == "top":
            x = 5 * x + 1 & FULL
            state = "out" if i > 20 else "middle"
        elif state == "middle":
            i += 1
            x ^= i
            state = "other" if x & 7 == 3 else "top" if i < 16 else "out"
        else:
            i += 2
            x = x + 100 & FULL
            state = "middle" if i < 18 else "top"
    return i * 65536 + x & FULL


def diamonds(t: int) -> int:
    x = 7 * t if t & 1 else t + 11
    if t & 2:
        x = ~x
        if t & 16:
            return x
    else:
        x <<= 2
    x = signed(x, 32)
    if -100 <= x <= 100:
        x += 1000000
        if t != 0:
            x -= t
    return x


def machine(file: CaseFile) -> None:
    rng = random.Random("machine")
    length, count = 24, 40
    programs = [[rng.choice([0, 1, 2, 3, 5, 6, 7, 1, 5, 200]) for _ in range(length)] for _ in range(count)]
    for number, program in enumerate(programs):
        if number % 4 == 0:
            program[rng.randrange(length)] = 4
    file.add("machine", "control", "machine",
             [source("u8", [op for program in programs for op in program], "programs"),
              target("b32", [run(program, t) for t, program in enumerate(programs)], "out"), value("u32", length)],
             block=(count,), section="9.7.12.4")  # fmt: skip


def triangles(file: CaseFile) -> None:
    for block in ((64,), (18,), (24,), (100,), (33, 3), (48, 2), (5, 5)):
        count = block[0] * (block[1] if len(block) > 1 else 1)
        bounds = [(7 * t) % 23 + t % 5 + 1 for t in range(count)]
        squares = [sum(i * i for i in range(n + 1)) for n in bounds]
        mixed = []
        for n in bounds:
            x = 0
            for i in range(n + 1):
                x = (x + 3 * i & FULL) ^ i
            mixed.append(x)
        sums = [F32.of(n * (n + 1) // 2) for n in bounds]
        for name, kind, expected in (
            ("triangle_u32", "b32", squares), ("triangle_s32", "b32", mixed), ("triangle_f32", "f32", sums),
            ("triangle_barrier", "b32", squares),
        ):  # fmt: skip
            file.add(
                f"{name}_{'x'.join(map(str, block))}", "control", name,
                [source("b32", bounds, "bound"), target(kind, expected, "out")], block=block, section=BRANCH,
                needs=["barrier"] if "barrier" in name else [],
            )  # fmt: skip


def run(program: Sequence[int], x: int) -> int:
    at = 0
    while at < len(program):
        op = program[at]
        at += 1
        if op == 4:
            break
        if op in (0, 6):
            x += 1
        elif op == 1:
            x <<= 1
        elif op == 2:
            x = ~x
        elif op == 3:
            at += 1
        elif op == 5:
            x = x * x & FULL
            x += x & 1
        x &= FULL
    return x


# --- special registers ------------------------------------------------------------------------------------


def registers(file: CaseFile) -> None:
    for grid, block in (((3, 2, 2), (4, 3, 2)), ((5,), (32,)), ((2, 3), (16, 16)), ((1, 1, 4), (1, 1, 8))):
        shape, extent = (*block, 1, 1)[:3], (*grid, 1, 1)[:3]
        out: list[int] = []
        for z in range(extent[2]):
            for y in range(extent[1]):
                for x in range(extent[0]):
                    for tz in range(shape[2]):
                        for ty in range(shape[1]):
                            for tx in range(shape[0]):
                                out += [packed(tx, ty, tz), packed(x, y, z), packed(*shape), packed(*extent)]
        name = f"{'x'.join(map(str, grid))}_{'x'.join(map(str, block))}"
        file.add(f"indices_{name}", "special", "indices", [target("b32", out, "out")], grid=grid, block=block,
                 section="10.1")  # fmt: skip
    file.add("as_operands", "special", "as_operands",
             [target("b32", [t + 32 + 3 * t + (t << 16) for _ in range(2) for t in range(40)], "out")], grid=(2,),
             block=(40,), section="10.1")  # fmt: skip
    file.add("clocks", "special_rare", "clocks", [target("b32", [3] * 32, "out")], block=(32,), needs=["barrier"],
             section="10.23", tier="verify")  # fmt: skip
    file.add("shared_sizes", "special_rare", "shared_sizes", [target("b32", [128, 1] * 8, "out")], block=(8,),
             shared=128, section="10.29", tier="verify")  # fmt: skip
    file.add("required", "special", "required", [target("b32", [i * i for i in range(192)], "out")], grid=(3,),
             block=(32, 2), section="11.4.3")  # fmt: skip
    file.add("bounded", "special", "bounded", [target("b32", list(range(300)), "out")], grid=(3,), block=(100,),
             section="11.4.2")  # fmt: skip


def packed(x: int, y: int, z: int) -> int:
    return z << 16 | y << 8 | x
