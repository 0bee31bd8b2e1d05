"""atom and red (PTX ISA 9.7.13.5, 9.7.13.6): every operation, on global and shared memory, all threads on few cells.

Final values do not depend on the order; of the values that threads get back only what no order can change is checked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import _ieee as ieee
from _build import Bits, CaseFile, changed, column, signed, source, target, value, varied
from _ieee import F32, F64

FULL = 0xFFFFFFFF
THREADS, BLOCK, CELLS = 256, 64, 5
ATOM, RED = "9.7.13.5", "9.7.13.6"


@dataclass(frozen=True)
class Operation:
    """An operation whose final value is the same in every order."""

    op: str
    type: str
    fold: Callable[[int, int], int]
    start: int = 0

    @property
    def bits(self) -> int:
        return int(self.type[1:])

    @property
    def name(self) -> str:
        return f"{self.op}_{self.type}"


def folds() -> list[Operation]:
    made = []
    for bits in (32, 64):
        full = (1 << bits) - 1

        def add(x: int, y: int, full: int = full) -> int:
            return x + y & full

        def least(x: int, y: int, bits: int = bits, full: int = full) -> int:
            return min(signed(x, bits), signed(y, bits)) & full

        def most(x: int, y: int, bits: int = bits, full: int = full) -> int:
            return max(signed(x, bits), signed(y, bits)) & full

        made += [
            Operation("add", f"u{bits}", add, 17),
            Operation("min", f"u{bits}", min, full),
            Operation("max", f"u{bits}", max, 3),
            Operation("min", f"s{bits}", least, full >> 1),
            Operation("max", f"s{bits}", most, full ^ (full >> 1)),
            Operation("and", f"b{bits}", lambda x, y: x & y, full),
            Operation("or", f"b{bits}", lambda x, y: x | y, 0),
            Operation("xor", f"b{bits}", lambda x, y: x ^ y, 5),
        ]
    made.append(Operation("add", "s32", lambda x, y: x + y & FULL, 1))
    made.append(Operation("add", "f32", lambda x, y: ieee.add(F32, x, y), F32.of(1)))
    made.append(Operation("add", "f64", lambda x, y: ieee.add(F64, x, y), F64.of(1)))
    return made


def needs(operation: Operation | None = None, *more: str) -> list[str]:
    wide = ["atomics.int64"] if operation and operation.bits == 64 and operation.type != "f64" else []
    return [*wide, *(["fp64"] if operation and operation.type == "f64" else []), *more]


def inputs(operation: Operation) -> list[int]:
    rng = random.Random(operation.name)
    if operation.type[0] == "f":
        f = F32 if operation.bits == 32 else F64
        return [f.of(rng.randrange(-50, 50)) for _ in range(THREADS)]  # sums of small integers are exact
    if operation.op == "and":
        full = (1 << operation.bits) - 1
        return [full ^ (1 << rng.randrange(operation.bits)) for _ in range(THREADS)]
    if operation.op == "or":
        return [1 << rng.randrange(operation.bits) for _ in range(THREADS)]
    return [varied(rng, operation.bits) for _ in range(THREADS)]


def folded(operation: Operation, values: Sequence[int], cells: int = CELLS) -> list[int]:
    result = [operation.start] * cells
    for thread, x in enumerate(values):
        result[thread % cells] = operation.fold(result[thread % cells], x)
    return result


GLOBAL_KERNEL = """// {instruction}: thread t on cell t mod cells.
.visible .entry {name}(
    .param .u64 {name}_param_0,
    .param .u64 {name}_param_1,
    .param .u32 {name}_param_2
)
{{
    .reg .b32   %r<8>;
    .reg .b64   %rd<8>;
    .reg .{reg} %v, %old;

    ld.param.u64    %rd1, [{name}_param_0];
    ld.param.u64    %rd2, [{name}_param_1];
    ld.param.u32    %r1, [{name}_param_2];
    cvta.to.global.u64  %rd1, %rd1;
    cvta.to.global.u64  %rd2, %rd2;
    mov.u32         %r2, %ctaid.x;
    mov.u32         %r3, %ntid.x;
    mov.u32         %r4, %tid.x;
    mad.lo.u32      %r5, %r2, %r3, %r4;
    mul.wide.u32    %rd3, %r5, {size};
    add.s64         %rd4, %rd1, %rd3;
    ld.global.{load}    %v, [%rd4];
    rem.u32         %r6, %r5, %r1;
    mul.wide.u32    %rd5, %r6, {size};
    add.s64         %rd6, %rd2, %rd5;
    {instruction}
    ret;
}}
"""

SHARED_KERNEL = """// {instruction}: a block's threads on cells in shared memory, which go out at the end.
.visible .entry {name}(
    .param .u64 {name}_param_0,
    .param .u64 {name}_param_1,
    .param .u32 {name}_param_2,
    .param .{param} {name}_param_3
)
{{
    .shared .align 8 .b8 {name}_cells[64];
    .reg .pred  %p<3>;
    .reg .b32   %r<12>;
    .reg .b64   %rd<8>;
    .reg .{reg} %v, %old;

    ld.param.u64    %rd1, [{name}_param_0];
    ld.param.u64    %rd2, [{name}_param_1];
    ld.param.u32    %r1, [{name}_param_2];
    ld.param.{load} %v, [{name}_param_3];
    cvta.to.global.u64  %rd1, %rd1;
    cvta.to.global.u64  %rd2, %rd2;
    mov.u32         %r2, %ctaid.x;
    mov.u32         %r3, %ntid.x;
    mov.u32         %r4, %tid.x;
    mad.lo.u32      %r5, %r2, %r3, %r4;
    mov.u32         %r6, {name}_cells;
    mad.lo.u32      %r7, %r4, {size}, %r6;
    setp.lt.u32     %p1, %r4, %r1;
    @%p1 st.shared.{load}   [%r7], %v;
    bar.sync        0;
    mul.wide.u32    %rd3, %r5, {size};
    add.s64         %rd4, %rd1, %rd3;
    ld.global.{load}    %v, [%rd4];
    rem.u32         %r8, %r4, %r1;
    mad.lo.u32      %r9, %r8, {size}, %r6;
    {instruction}
    bar.sync        0;
    @!%p1 bra       $L__end;
    ld.shared.{load}    %v, [%r7];
    mad.lo.u32      %r10, %r2, %r1, %r4;
    mul.wide.u32    %rd5, %r10, {size};
    add.s64         %rd6, %rd2, %rd5;
    st.global.{load}    [%rd6], %v;
$L__end:
    ret;
}}
"""


def generate() -> list[CaseFile]:
    file = CaseFile("atomics")
    for operation in folds():
        on_global(file, operation)
        on_shared(file, operation)
    handwritten(file)
    return [file]


def register_of(operation: Operation) -> tuple[str, str]:
    """Register type, and the type of loads and stores."""
    plain = operation.type if operation.type[0] == "f" else f"b{operation.bits}"
    return plain, plain


def on_global(file: CaseFile, operation: Operation) -> None:
    module = file.module(f"atomics_{operation.bits}")
    reg, load = register_of(operation)
    values = inputs(operation)
    for form in ("atom", "red"):
        name = f"{form}_{operation.name}"
        destination = "%old, " if form == "atom" else ""
        instruction = f"{form}.global.{operation.op}.{operation.type} {destination}[%rd6], %v;"
        module.kernels.append(
            GLOBAL_KERNEL.format(name=name, instruction=instruction, reg=reg, load=load, size=operation.bits // 8)
        )
        file.add(
            f"{name}_global", module, name,
            [
                source(operation.type, values, "in"),
                changed(operation.type, [operation.start] * CELLS, folded(operation, values), "cells"),
                value("u32", CELLS),
            ],
            grid=(THREADS // BLOCK,), block=(BLOCK,), needs=needs(operation), section=ATOM if form == "atom" else RED,
        )  # fmt: skip


def on_shared(file: CaseFile, operation: Operation) -> None:
    module = file.module(f"atomics_shared_{operation.bits}")
    reg, load = register_of(operation)
    values = inputs(operation)
    expected: list[int] = []
    for at in range(0, THREADS, BLOCK):
        expected += folded(operation, values[at : at + BLOCK])
    name = f"atom_{operation.name}_shared"
    instruction = f"atom.shared.{operation.op}.{operation.type} %old, [%r9], %v;"
    module.kernels.append(
        SHARED_KERNEL.format(
            name=name, instruction=instruction, reg=reg, load=load, size=operation.bits // 8, param=load
        )
    )
    file.add(
        name, module, name,
        [
            source(operation.type, values, "in"), target(operation.type, expected, "cells"), value("u32", CELLS),
            value(operation.type, operation.start, "start"),
        ],
        grid=(THREADS // BLOCK,), block=(BLOCK,), needs=needs(operation, "barrier"), section=ATOM,
    )  # fmt: skip


def handwritten(file: CaseFile) -> None:
    rng = random.Random("handwritten")
    count = 4 * 64
    file.add("tickets", "atomics", "tickets",
             [changed("u32", [5, 7], [5 + count, (7 - count) & FULL], "counters"),
              target("u32", [5 + i for i in range(count)], "up", any_order=True),
              target("u32", [(7 - i) & FULL for i in range(count)], "down", any_order=True)],
             grid=(4,), block=(64,), section=ATOM, note="Every thread gets a number of its own.")  # fmt: skip
    wide = [(1 << 32) - 10 + 3 * i for i in range(count)]
    file.add("tickets_u64", "atomics", "tickets_u64",
             [changed("u64", [wide[0]], [wide[-1] + 3], "counter"), target("u64", wide, "got", any_order=True)],
             grid=(4,), block=(64,), needs=["atomics.int64"], section=ATOM)  # fmt: skip

    def wrapping(bound: int) -> tuple[list[int], int]:
        cell, seen = 0, []
        for _ in range(count):
            seen.append(cell)
            cell = 0 if cell >= bound else cell + 1
        return seen, cell

    def unwrapping(bound: int) -> tuple[list[int], int]:
        cell, seen = 0, []
        for _ in range(count):
            seen.append(cell)
            cell = bound if cell == 0 or cell > bound else cell - 1
        return seen, cell

    up, up_last = wrapping(9)
    down, down_last = unwrapping(12)
    file.add("inc_dec", "atomics", "inc_dec",
             [changed("u32", [0, 0], [up_last, down_last], "cells"), value("u32", 9), value("u32", 12),
              target("u32", up, "inc", any_order=True), target("u32", down, "dec", any_order=True)],
             grid=(4,), block=(64,), section=ATOM)  # fmt: skip
    for bits in (32, 64):
        kind = f"b{bits}"
        wide_needs = ["atomics.int64"] if bits == 64 else []
        values = [rng.getrandbits(bits - 1) | 1 for _ in range(count)]
        file.add(
            f"exch_{kind}", "atomics", f"exch_{kind}",
            [
                source(kind, values, "in"),
                changed(kind, [77] + [0] * count, [77, *values], "cell, then old values", any_order=True),
                value("b64", [f"&1+{bits // 8}"], "old"), value("u32", count),
            ],
            grid=(4,), block=(64,), needs=wide_needs, section=ATOM,
            note="The cell and what the threads got together are what was there and what came.",
        )  # fmt: skip
        file.add(f"exch_once_{kind}", "atomics", f"exch_{kind}",
                 [source(kind, values[:1], "in"), changed(kind, [77], values[:1], "cell"), target(kind, [77], "old"),
                  value("u32", 1)], block=(1,), needs=wide_needs, section=ATOM)  # fmt: skip
        add = [varied(rng, bits) for _ in range(count)]
        file.add(f"cas_loop_{kind}", "atomics", f"cas_loop_{kind}",
                 [source(kind, add, "in"), changed(kind, [3, 4], [3 + sum(add[::2]) & (1 << bits) - 1,
                                                                  4 ^ xor(add[1::2])], "cells")],
                 grid=(4,), block=(64,), needs=wide_needs, section=ATOM,
                 note="Sums and exclusive ors made of compare-and-swap, as __device__ code does.")  # fmt: skip
    file.add("cas_once", "atomics", "cas_once",
             [changed("u32", [100, 200], [111, 200], "cells"), target("u32", [100, 200], "old")], block=(1,),
             section=ATOM)  # fmt: skip
    floats = [F32.of(rng.uniform(-1e3, 1e3)) for _ in range(count)]
    largest = max(floats, key=lambda x: ieee.key(F32, x))
    file.add("float_max", "atomics", "float_max",
             [source("f32", floats, "in"), changed("f32", [F32.of(-1e9)], [largest], "cell")], grid=(4,), block=(64,),
             section=ATOM)  # fmt: skip
    samples = [rng.randrange(256) for _ in range(1024)]
    bins = [samples.count(i) for i in range(256)]
    file.add("histogram", "atomics", "histogram",
             [source("u8", samples, "in"), changed("u32", [0] * 256, bins, "bins"), value("u32", 1024)], grid=(4,),
             block=(128,), needs=["barrier"], section=ATOM)  # fmt: skip
    numbers = [varied(rng, 32) for _ in range(count)]
    file.add("scopes", "atomics", "scopes",
             [source("u32", numbers, "in"), changed("u32", [9] * 6, [9 + sum(numbers) & FULL] * 6, "cells")],
             grid=(4,), block=(64,), section=ATOM)  # fmt: skip
    mine = [x + 1 & FULL for x in numbers[:64]]
    file.add("generic", "atomics", "generic",
             [source("u32", numbers[:64], "in"), target("u32", mine, "out"),
              changed("u32", [1], [1 + sum(numbers[:64:2]) & FULL], "cell"),
              target("u32", [sum(numbers[1:64:2]) & FULL], "shared cell")],
             block=(64,), needs=["barrier"], section=ATOM,
             note="Addresses are generic: even threads on global, odd ones on shared memory.")  # fmt: skip
    pieces: Bits = column(lambda x: x & 0xFF, numbers[:64])
    total = 0
    for x in numbers[:64]:
        total += x & 0xFF
    file.add("compact", "atomics", "compact",
             [source("u32", [x & 0xFF for x in numbers[:64]], "in"),
              target("u32", [x for x in pieces if isinstance(x, int) and x & 1], "odd ones", any_order=True),
              changed("u32", [0], [sum(x & 1 for x in numbers[:64])], "count")],
             block=(64,), section=ATOM, note="Each odd number takes the next free place.")  # fmt: skip


def xor(values: Sequence[int]) -> int:
    result = 0
    for x in values:
        result ^= x
    return result
