"""Barriers and warps (PTX ISA 9.7.13, 9.7.9.6): what the kernels of barrier.ptx and warp.ptx must leave behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from _build import CaseFile, signed, source, target, value
from _ieee import F32

FULL = 0xFFFFFFFF
BLOCKS = ((64,), (16, 16), (8, 8, 4), (33, 3), (48, 2))
"""Shapes whose warps do not follow their rows; (33, 3) ends in a warp of 3 lanes."""
Row = list["int | None"]


def generate() -> list[CaseFile]:
    barrier, warp = CaseFile("barrier"), CaseFile("warp")
    reductions(barrier)
    exchanges(barrier)
    votes_of_blocks(barrier)
    for shape in BLOCKS:
        shuffles(warp, shape)
        gather(warp, shape)
        votes(warp, shape)
        lanes(warp, shape)
        matches(warp, shape)
        redux(warp, shape)
        block_sum(warp, shape)
        warp_barrier(warp, shape)
    for shape in BLOCKS:
        if threads(shape) % 32 == 0:
            divergent(warp, shape)
            subset(warp, shape)
            idioms(warp, shape)
    return [barrier, warp]


# --- barriers ---------------------------------------------------------------------------------------------


def reductions(file: CaseFile) -> None:
    rng = random.Random("reduce")
    count, block = 1000, 256
    a = [rng.getrandbits(32) for _ in range(count)]
    sums = [sum(a[at : at + block]) & FULL for at in range(0, count, block)]
    file.add("reduce", "barrier", "reduce", [source("b32", a, "in"), target("b32", sums, "out"), value("u32", count)],
             grid=(4,), block=(block,), needs=["barrier"], section="9.7.13.1")  # fmt: skip
    for block in (32, 100, 256):
        a = [rng.getrandbits(28) for _ in range(3 * block)]
        scanned = [sum(a[at : at + i + 1]) & FULL for at in range(0, 3 * block, block) for i in range(block)]
        file.add(f"scan_{block}", "barrier", "scan", [source("b32", a, "in"), target("b32", scanned, "out")],
                 grid=(3,), block=(block,), needs=["barrier"], section="9.7.13.1")  # fmt: skip


def exchanges(file: CaseFile) -> None:
    rng = random.Random("exchanges")
    for block in (64, 96):
        steps, grid = 10, 2
        a = [rng.getrandbits(32) for _ in range(grid * block)]
        out: list[int] = []
        for at in range(0, len(a), block):
            row = a[at : at + block]
            for _ in range(steps):
                row = [3 * row[i] + row[(i + 1) % block] + row[i - 1] & FULL for i in range(block)]
            out += row
        file.add(f"double_buffer_{block}", "barrier", "double_buffer",
                 [source("b32", a, "in"), target("b32", out, "out"), value("u32", steps)], grid=(grid,),
                 block=(block,), shared=8 * block, needs=["barrier"], section="9.7.13.1")  # fmt: skip
    for block, active in ((64, 40), (128, 33), (128, 5)):
        a = [rng.getrandbits(32) for _ in range(3 * active)]
        out = []
        for at in range(0, len(a), active):
            row = [x + i & FULL for i, x in enumerate(a[at : at + active][::-1])]
            out += [x + row[0] & FULL for x in row]
        file.add(f"early_return_{block}_{active}", "barrier", "early_return",
                 [source("b32", a, "in"), target("b32", out, "out"), value("u32", active)], grid=(3,), block=(block,),
                 needs=["barrier"], section="9.7.13.1",
                 note="Threads that have left are not waited for.")  # fmt: skip
    out = []
    for block_id in range(5):
        row = [100 * block_id + t for t in range(64)]
        out += row[::-1] if block_id & 1 else [x + 50000 for x in row]
    file.add("uniform_branch", "barrier", "uniform_branch", [target("b32", out, "out")], grid=(5,), block=(64,),
             needs=["barrier"], section="9.7.13.1")  # fmt: skip
    block = 128
    values = [17 * i + 5 for i in range(3 * block)]
    out = [values[at + (t + 37) % block] for at in range(0, len(values), block) for t in range(block)]
    file.add("global_exchange", "barrier", "global_exchange",
             [target("b32", values, "memory"), target("b32", out, "out")], grid=(3,), block=(block,),
             needs=["barrier"], section="9.7.13.1")  # fmt: skip
    turns = 6
    out = []
    for t in range(64):
        total = 0
        for turn in range(turns):
            total = 3 * total + 100 * turn + (63 - t) & FULL
        out.append(total)
    file.add("producer_consumer", "barrier_partial", "producer_consumer",
             [target("b32", out, "out"), value("u32", turns)], block=(128,),
             needs=["barrier.partial", "progress.warp"], section="9.7.13.1")  # fmt: skip


def votes_of_blocks(file: CaseFile) -> None:
    rng = random.Random("red")
    block = 96
    rows = [[1] * block, [0] * block, [rng.choice([-3, 0, 5]) & FULL for _ in range(block)], [0] * 95 + [9]]
    out: list[int] = []
    for row in rows:
        holds = [signed(x, 32) > 0 for x in row]
        flags = int(all(holds)) | 2 * int(any(holds))
        for x in row:
            out += [sum(holds), block - sum(holds), flags, x]
    file.add("barrier_reduction", "barrier", "barrier_reduction",
             [source("b32", [x for row in rows for x in row], "in"), target("b32", out, "out")], grid=(4,),
             block=(block,), needs=["barrier"], section="9.7.13.1")  # fmt: skip
    cell = list(range(128))
    cell = [3 * cell[t ^ 127] for t in range(128)]
    cell = [cell[t ^ 63] + cell[t] for t in range(128)]
    file.add("spellings", "barrier", "spellings", [target("b32", [cell[t ^ 32] for t in range(128)], "out")],
             block=(128,), needs=["barrier"], section="9.7.13.1")  # fmt: skip
    file.add("counted", "barrier_partial", "counted", [target("b32", [(63 - t) ** 2 for t in range(64)], "out")],
             block=(64,), needs=["barrier.partial"], section="9.7.13.1")  # fmt: skip


# --- warps ------------------------------------------------------------------------------------------------


def threads(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def name_of(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def warps(count: int) -> list[range]:
    """The linear thread ids of each warp."""
    return [range(first, min(first + 32, count)) for first in range(0, count, 32)]


def random_words(shape: Sequence[int], seed: str, bits: int = 32) -> list[int]:
    rng = random.Random(f"{seed}.{name_of(shape)}")
    return [rng.getrandbits(bits) for _ in range(threads(shape))]


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The manual's pseudocode: the lane that is read, and the predicate."""
    bval, cval, segment = b & 31, c & 31, c >> 8 & 31
    most = (lane & segment) | (cval & ~segment & 31)
    least = lane & segment
    match mode:
        case "up":
            other, taken = lane - bval, lane - bval >= most
        case "down":
            other, taken = lane + bval, lane + bval <= most
        case "bfly":
            other, taken = lane ^ bval, lane ^ bval <= most
        case _:
            other = least | (bval & ~segment & 31)
            taken = other <= most
    return (other if taken else lane), taken


PAIRS = {
    "up": [(1, 0), (16, 0), (0, 0), (3, 0x1800), (1, 0x1E00), (7, 0x1000), (33, 0)],
    "down": [(1, 31), (16, 31), (31, 31), (2, 0x181F), (1, 0x1E1F), (5, 0x100F), (4, 20)],
    "bfly": [(1, 31), (16, 31), (31, 31), (7, 0x181F), (9, 0x181F), (4, 11), (3, 0x1C1F)],
    "idx": [(0, 31), (17, 31), (31, 31), (2, 0x181F), (9, 0x1C1F), (40, 31), (12, 8)],
}
"""(b, c): whole warps, segments of 2 to 16 lanes, clamps, lane numbers beyond 31."""


def shuffles(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    a = random_words(shape, "shuffle")
    for mode, pairs in PAIRS.items():
        got: Row = []
        flags: list[int] = []
        for b, c in pairs:
            for warp in warps(count):
                for thread in warp:
                    lane, taken = source_lane(mode, thread & 31, b, c)
                    flags.append(int(taken))
                    got.append(a[warp.start + lane] if lane < len(warp) else None)
        file.add(f"shuffle_{mode}_{name_of(shape)}", "warp", f"shuffle_{mode}",
                 [source("b32", a, "in"), source("b32", [x for pair in pairs for x in pair], "b, c"),
                  value("u32", len(pairs)), target("b32", got, "out"), target("b32", flags, "predicate")],
                 block=shape, needs=["warp"], section="9.7.9.6",
                 note="What comes from a lane that does not exist is not looked at.")  # fmt: skip


def gather(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    a = random_words(shape, "gather")
    rng = random.Random(f"lanes.{name_of(shape)}")
    wanted = [rng.randrange(len(warp)) for warp in warps(count) for _ in warp]
    out = [a[warp.start + wanted[thread]] for warp in warps(count) for thread in warp]
    file.add(f"gather_{name_of(shape)}", "warp", "shuffle_gather",
             [source("b32", a, "in"), source("b32", wanted, "lane"), target("b32", out, "out")], block=shape,
             needs=["warp"], section="9.7.9.6")  # fmt: skip


def votes(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    a = random_words(shape, "votes")
    kinds = warps(count)
    for number, warp in enumerate(kinds):
        if number % 3 != 1:
            for thread in warp:
                a[thread] = [7, 0, 0][number % 3] if number % 2 else [0, 0, 5][number % 3]
    out: list[int] = []
    mask: list[int] = []
    for warp in kinds:
        holds = [signed(a[thread], 32) > 0 for thread in warp]
        ballot = sum(h << i for i, h in enumerate(holds))
        negated = sum((not h) << i for i, h in enumerate(holds))
        flags = int(any(holds)) | 2 * all(holds) | 4 * (all(holds) or not any(holds)) | 8 * (not all(holds))
        for lane in range(len(warp)):
            out += [ballot, negated, flags, 1 << lane]
            mask += [FULL, FULL, FULL, 1 << lane]
    file.add(f"votes_{name_of(shape)}", "warp", "votes",
             [source("b32", a, "in"), target("b32", out, "ballot, negated, votes, active", mask=mask)], block=shape,
             needs=["warp"], section="9.7.13.9",
             note="Of activemask only the thread's own bit is certain.")  # fmt: skip


def lanes(file: CaseFile, shape: Sequence[int]) -> None:
    out: list[int] = []
    for thread in range(threads(shape)):
        lane = thread & 31
        bit = 1 << lane
        below = bit - 1
        out += [lane, bit, below, below | bit, FULL ^ below ^ bit, FULL ^ below, 32, thread]
    file.add(f"lanes_{name_of(shape)}", "warp", "lanes", [target("b32", out, "out")], block=shape, needs=["warp"],
             section="10.3")  # fmt: skip


def matches(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    rng = random.Random(f"match.{name_of(shape)}")
    a = [rng.choice([3, 5, 0, FULL]) for _ in range(count)]
    wide = [rng.choice([0, 1 << 32, 1, (1 << 32) + 1]) for _ in range(count)]
    for number, warp in enumerate(warps(count)):
        if number % 2 == 0:
            for thread in warp:
                a[thread] = 1000 + number
        if number % 3 == 0:
            for thread in warp:
                wide[thread] = 5 << 32
    out: list[int] = []
    for warp in warps(count):
        everyone = (1 << len(warp)) - 1
        same, same_wide = len({a[t] for t in warp}) == 1, len({wide[t] for t in warp}) == 1
        for thread in warp:
            some = sum((a[t] == a[thread]) << i for i, t in enumerate(warp))
            some_wide = sum((wide[t] == wide[thread]) << i for i, t in enumerate(warp))
            flags = 16 * same + 32 * same_wide + same + 2 * same_wide
            out += [some, some_wide, flags, everyone if same else 0]
    file.add(f"matches_{name_of(shape)}", "warp", "matches",
             [source("b32", a, "a"), source("b64", wide, "b"), target("b32", out, "out")], block=shape,
             needs=["warp"], section="9.7.13.10")  # fmt: skip


def redux(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    a = random_words(shape, "redux")
    out: list[int] = []
    for warp in warps(count):
        values = [a[t] for t in warp]
        numbers = [signed(x, 32) for x in values]
        conjunction, disjunction, parity = FULL, 0, 0
        for x in values:
            conjunction, disjunction, parity = conjunction & x, disjunction | x, parity ^ x
        row = [sum(values), min(values), max(values), min(numbers), max(numbers), conjunction, disjunction, parity]
        out += [x & FULL for x in row] * len(values)
    file.add(f"reductions_{name_of(shape)}", "warp", "reductions",
             [source("b32", a, "in"), target("b32", out, "out")], block=shape, needs=["warp"],
             section="9.7.13.12")  # fmt: skip


def block_sum(file: CaseFile, shape: Sequence[int]) -> None:
    """The partial last warp would read lanes that do not exist: only blocks of whole warps."""
    count = threads(shape)
    if count % 32:
        return
    a = [x for _ in range(3) for x in random_words(shape, f"sum{_}")]
    sums = [sum(a[at : at + count]) & FULL for at in range(0, len(a), count)]
    file.add(f"block_sum_{name_of(shape)}", "warp", "block_sum",
             [source("b32", a, "in"), target("b32", sums, "out")], grid=(3,), block=shape,
             needs=["warp", "barrier"], section="9.7.9.6")  # fmt: skip


def warp_barrier(file: CaseFile, shape: Sequence[int]) -> None:
    count = threads(shape)
    out: Row = []
    for warp in warps(count):
        for thread in warp:
            first = thread ^ 1
            second = first ^ 19
            reads = first < warp.stop and second < warp.stop
            out.append(13 * second + 1 if reads else None)
    file.add(f"warp_barrier_{name_of(shape)}", "warp", "warp_barrier", [target("b32", out, "out")], block=shape,
             needs=["warp"], section="9.7.13.2",
             note="Cells of threads that do not exist hold anything; what comes of them is not looked at.")  # fmt: skip


def divergent(file: CaseFile, shape: Sequence[int]) -> None:
    a = random_words(shape, "divergent")
    out: list[int] = []
    for warp in warps(len(a)):
        values = [a[t] for t in warp]
        ballot = sum((values[i] > 0x7FFFFFFF) << i for i in range(0, 32, 2))
        moved = []
        for lane in range(32):
            if lane & 1:
                moved.append((values[lane + 4] if lane + 4 <= 31 else values[lane], 7 if lane + 4 <= 31 else 9))
            else:
                moved.append((values[lane ^ 2], ballot))
        for lane in range(32):
            out += [*moved[lane], moved[lane ^ 1][0], lane]
    file.add(f"divergent_{name_of(shape)}", "warp", "divergent", [source("b32", a, "in"), target("b32", out, "out")],
             block=shape, needs=["warp"], section="9.7.9.6")  # fmt: skip


def subset(file: CaseFile, shape: Sequence[int]) -> None:
    a = random_words(shape, "subset")
    for active in (1, 7, 20):
        out = [0xA5A5A5A5] * (4 * len(a))
        for warp in warps(len(a)):
            ballot = sum((a[warp.start + i] & 1) << i for i in range(active))
            for lane in range(active):
                before = (ballot & ((1 << lane) - 1)).bit_count()
                at = 4 * (warp.start + lane)
                out[at : at + 4] = [a[warp.start], ballot, ballot.bit_count(), before]
        file.add(f"subset_{active}_{name_of(shape)}", "warp", "subset",
                 [source("b32", a, "in"), target("b32", out, "out"), value("u32", active)], block=shape,
                 needs=["warp"], section="9.7.9.6", note="Threads that do not take part leave the poison.")  # fmt: skip


def idioms(file: CaseFile, shape: Sequence[int]) -> None:
    a = random_words(shape, "idioms", 64)
    low: Callable[[int], int] = (1023).__and__
    sums: list[int] = []
    scans: list[int] = []
    moved: list[int] = []
    for warp in warps(len(a)):
        values = [low(a[t]) for t in warp]
        sums += [F32.of(sum(values))] * 32
        scans += [sum(values[: i + 1]) for i in range(32)]
        moved += [a[t + 3] if t + 3 < warp.stop else a[t] for t in warp]
    file.add(f"idioms_{name_of(shape)}", "warp", "idioms",
             [source("b64", a, "in"), target("f32", sums, "sum"), target("b32", scans, "scan"),
              target("b64", moved, "moved")], block=shape, needs=["warp"], section="9.7.9.6",
             note="The sums are of small integers: exact in any order.")  # fmt: skip
