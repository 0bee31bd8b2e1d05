"""Memory spaces (PTX ISA 5, 9.7.9): what the hand-written kernels of memory.ptx and shared.ptx must leave behind."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import _ieee as ieee
from _build import Bits, CaseFile, changed, hidden, signed, source, target, value
from _ieee import F32, F64

TABLE = [3, 1, 4, 1, 5, 9, 2, 6]
"""`table` of memory.ptx."""
WEIGHTS = [F32.of(1), F32.of(0.5), F32.of(-2), F32.inf]
NUMBERS = [10, 20, 30, 0, 0, 0]
FULL = 0xFFFFFFFF


def words(data: bytes, width: int = 4) -> list[int]:
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def generate() -> list[CaseFile]:
    memory, shared = CaseFile("memory"), CaseFile("shared")
    plain(memory)
    widths(memory)
    vectors(memory)
    unaligned(memory)
    constants(memory)
    global_variables(memory)
    local(memory)
    generic(memory)
    parameters(memory)
    pointers(memory)
    qualifiers(memory)
    offsets(memory)
    blocks_of_shared(shared)
    shared_addresses(shared)
    tiles(shared)
    return [memory, shared]


def plain(file: CaseFile) -> None:
    rng = random.Random("vector_add")
    a = [F32.of(rng.uniform(-1e6, 1e6)) for _ in range(1000)]
    b = [F32.of(rng.uniform(-1, 1)) for _ in range(1000)]
    file.add(
        "vector_add", "memory", "vector_add",
        [source("f32", a, "a"), source("f32", b, "b"),
         target("f32", [ieee.add(F32, x, y) for x, y in zip(a, b, strict=True)], "c"), value("u32", 1000, "n")],
        grid=(8,), block=(128,), section="9.7.9.8", note="The last block is partly idle.",
    )  # fmt: skip


def widths(file: CaseFile) -> None:
    rng = random.Random("widths")
    a = [0, 0xFFFFFFFFFFFFFFFF, 0x8000000080008080, 0x7FFF7F7F7FFFFFFF, *(rng.getrandbits(64) for _ in range(28))]
    out: list[int] = []
    for x in a:
        raw = x.to_bytes(8, "little")
        halves, (low, high) = words(raw, 2), words(raw)
        row = [
            raw[0], signed(raw[0], 8), signed(raw[1], 8), raw[7], signed(raw[7], 8),
            halves[1], signed(halves[1], 16), signed(halves[3], 16), high, signed(high, 32),
        ]  # fmt: skip
        out += words(b"".join((v & (1 << 64) - 1).to_bytes(8, "little") for v in row))
        out += [high, low, low, high]
    file.add(
        "widths", "memory", "widths", [source("b64", a, "in"), target("b32", out, "out")], block=(32,),
        section="9.4.1", note="The ld of a type narrower than its register extends as the type says.",
    )  # fmt: skip
    before = [rng.getrandbits(32) for _ in range(32 * 4)]
    after = bytearray(b"".join(x.to_bytes(4, "little") for x in before))
    for thread, x in enumerate(a):
        at = 16 * thread
        after[at + 1] = after[at + 3] = after[at + 4] = x & 0xFF
        after[at + 6 : at + 8] = after[at + 8 : at + 10] = (x & 0xFFFF).to_bytes(2, "little")
        after[at + 12 : at + 16] = (x & FULL).to_bytes(4, "little")
    file.add(
        "narrow_stores", "memory", "narrow_stores",
        [source("b64", a, "in"), changed("b32", before, words(bytes(after)), "out")], block=(32,), section="9.4.1",
    )  # fmt: skip


def vectors(file: CaseFile) -> None:
    rng = random.Random("vectors")
    data = rng.randbytes(64 * 16)
    out = b""
    for at in range(0, len(data), 64):
        row = data[at : at + 64]
        w = [row[i : i + 4] for i in range(0, 64, 4)]
        out += w[3] + w[2] + w[1] + w[0] + w[6] + w[7] + w[4] + w[5]
        out += w[8][::-1] + w[9][2:] + w[9][:2] + w[11] + w[10] + w[14] + w[15] + w[12] + w[13]
    file.add(
        "vectors", "memory", "vectors", [source("b32", words(data), "in"), target("b32", words(out), "out")],
        block=(16,), section="9.7.9.8", needs=["fp64"],
    )  # fmt: skip
    data = rng.randbytes(16 * 16)
    wide: list[int] = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        wide += [signed(byte, 8) & FULL for byte in row[:4]]
        wide += [words(row)[2], words(row)[0], *words(row[12:], 2)]
    file.add(
        "vector_extend", "memory", "vector_extend",
        [source("b32", words(data), "in"), target("b32", wide, "out")], block=(16,), section="9.7.9.8",
    )  # fmt: skip


def unaligned(file: CaseFile) -> None:
    rng = random.Random("unaligned")
    for start in (0, 3):
        data = rng.randbytes(170)
        out: list[int | None] = [None] * 170
        for thread in range(32):
            at = 5 * thread + start
            word = int.from_bytes(data[at : at + 4], "little") + 0x01010101 & FULL
            out[at : at + 4] = word.to_bytes(4, "little")
        expected: Bits = [0xA5 if byte is None else byte for byte in out]
        file.add(
            f"unaligned_bytes_{start}", "memory", "unaligned_bytes",
            [source("b8", list(data), "in"), target("b8", expected, "out"), value("u32", start)], block=(32,),
            section="9.7.9.8", note="What no thread writes must still be the poison.",
        )  # fmt: skip


def constants(file: CaseFile) -> None:
    text = b"Hello, PTX!\0"
    halves = [-1, 2, -3, 4, -5, 6]
    out: list[int] = []
    for t in range(8):
        row = struct.pack("<IIIhhdIIii", TABLE[t], TABLE[5], WEIGHTS[t & 3], text[t + 1], halves[5], 1.5, TABLE[2],
                          TABLE[3], halves[0], halves[t % 3 + 3])  # fmt: skip
        out += words(row)
    file.add(
        "constants", "memory", "constants", [target("b32", out, "out")], block=(8,), section="5.1.3", needs=["fp64"]
    )


def global_variables(file: CaseFile) -> None:
    letters = b"abc\0\0\0\0\0"
    pi = 0x40490FDB
    out: list[int] = []
    for t in range(6):
        row = struct.pack("<IiQIIIIIIQIiii", NUMBERS[t], -(2**31), 0, NUMBERS[2], NUMBERS[2], letters[1], TABLE[5],
                          NUMBERS[1], letters[2], 8, pi, letters[3], 1, -1)  # fmt: skip
        out += words(row)
    file.add("globals", "memory", "globals", [target("b32", out, "out")], block=(6,), section="5.4.4",
             note="Variables are zero where the initialiser ends; addresses may be initialisers.")  # fmt: skip


def local(file: CaseFile) -> None:
    rng = random.Random("local")
    data = [rng.getrandbits(32) for _ in range(16 * 40)]
    out = []
    for t in range(40):
        array = [0] * 16
        for i in range(16):
            array[(7 * i + t) & 15] = data[16 * t + i]
        total = 0
        for word in array:
            total = (31 * total + word) & FULL
        total = ((total + array[4] & FULL) ^ array[7]) + (array[15] >> 8 & 0xFF) & FULL
        out.append(total)
    file.add("local_array", "memory", "local_array", [source("b32", data, "in"), target("b32", out, "out")],
             block=(40,), section="5.1.5")  # fmt: skip


def generic(file: CaseFile) -> None:
    data = [1, 2, 3, 44]
    loaded = [(data[3], 202, t + 300, TABLE[5])[t & 3] for t in range(40)]
    spaces = (1000, 2000, 4000, 0)
    file.add(
        "generic_select", "memory", "generic_select", [source("b32", data, "in"), target("b32", loaded, "out")],
        block=(40,), needs=["barrier"], section="9.7.9.20",
    )  # fmt: skip
    file.add(
        "space_of_address", "memory_space", "space_of_address",
        [source("b32", data, "in"), target("b32", [x + spaces[t & 3] for t, x in enumerate(loaded)], "out")],
        block=(40,), needs=["barrier"], section="9.7.9.19",
        note="Whether a constant's address counts as global is not looked at.",
    )  # fmt: skip
    file.add("cvta_round_trip", "memory", "cvta_round_trip",
             [source("b32", [5, 90], "in"), target("b32", [0x0100005A + t for t in range(16)], "out")], block=(16,),
             section="9.7.9.20")  # fmt: skip


def parameters(file: CaseFile) -> None:
    numbers = [100 + 7 * i for i in range(8)]
    aggregate = bytearray(random.Random("parameters").randbytes(48))
    aggregate[0], aggregate[1] = 0xFE, 0x9C
    aggregate[2:4] = struct.pack("<h", -1234)
    aggregate[8:16] = bytes(8)
    aggregate[16:24] = struct.pack("<ff", 1.25, -4.5)
    bits: list[int | str | None] = list(words(bytes(aggregate), 8))
    bits[1] = "&6"
    vector = [0x11111111, 0x22222222, 0x33333333, 0x44444444]
    out: list[int] = []
    tail = words(bytes(aggregate[24:32]))
    for t in range(8):
        row = struct.pack("<HhiIfIid4III", 0xFE, signed(0x9C, 8), -1234, numbers[t], 1.25 - 4.5, 200, -2, -0.0,
                          *vector[::-1], words(bytes(aggregate))[8 + (t & 3)], tail[0])  # fmt: skip
        out += words(row) + tail
    file.add(
        "parameters", "memory", "parameters",
        [
            value("b64", bits, "structure", align=8), value("u8", 200), value("f64", F64.sign),
            value("b32", vector, align=16), value("u16", 0xFFFE), target("b32", out, "out"),
            hidden("b32", numbers, "numbers"),
        ],
        block=(8,), section="5.1.6", needs=["fp64", "memory.usm"],
        note="The address of `numbers` stands in the structure only.",
    )  # fmt: skip


def pointers(file: CaseFile) -> None:
    rng = random.Random("chase")
    count, lists = 60, 12
    order = list(range(count))
    rng.shuffle(order)
    nodes: list[int | str | None] = [0, 0] * count
    heads: list[int | str | None] = []
    out: list[int] = []
    for number in range(lists):
        chain = order[sum(range(number)) % count :][: number % 6 + (number > 0)] if number else []
        chain = [node for node in chain if nodes[2 * node + 1] == 0]
        digits = [rng.randrange(1, 10) for _ in chain]
        for place, node in enumerate(chain):
            nodes[2 * node] = f"&3+{16 * chain[place + 1]}" if place + 1 < len(chain) else 0
            nodes[2 * node + 1] = digits[place]
        heads.append(f"&3+{16 * chain[0]}" if chain else 0)
        total = 0
        for digit in digits:
            total = 10 * total + digit
        out += [total, len(chain)]
    file.add(
        "chase", "memory", "chase",
        [source("b64", heads, "heads"), target("b32", out, "out"), value("u32", lists), hidden("b64", nodes, "nodes")],
        block=(32,), section="9.7.9.8", needs=["memory.usm"],
        note="The addresses of the nodes stand in memory only.",
    )  # fmt: skip


def qualifiers(file: CaseFile) -> None:
    rng = random.Random("qualifiers")
    a = [rng.getrandbits(32) for _ in range(32)]
    out = [12 * x + i & FULL for x in a for i in range(8)]
    file.add("qualifiers", "memory", "qualifiers", [source("b32", a, "in"), target("b32", out, "out")], block=(32,),
             section="9.7.9.8")  # fmt: skip
    before = [rng.getrandbits(32) for _ in range(4 * 16)]
    after: list[int] = []
    for t in range(16):
        first = before[4 * t] + 7 & FULL
        after += [7, (first & 0xFFFFFF00) | 0xFF, (first & 0xFFFFFF00) | 0xFF, first]
    file.add("aliasing", "memory", "aliasing",
             [changed("b32", before, after, "memory"), value("b64", ["&0"], "the same again")], block=(16,),
             section="8.10.4")  # fmt: skip


def offsets(file: CaseFile) -> None:
    rng = random.Random("offsets")
    a = [rng.getrandbits(32) for _ in range(24)]
    out: list[int] = []
    for t in range(16):
        out += [a[t] + a[t + 1] & FULL, a[t + 1], a[t + 2], a[t + 3]]
    file.add("offsets", "memory", "offsets", [source("b32", a, "in"), target("b32", out, "out")], block=(16,),
             section="6.4.1")  # fmt: skip


def blocks_of_shared(file: CaseFile) -> None:
    rng = random.Random("shared")
    a = [rng.getrandbits(32) for _ in range(3 * 64)]
    out = [x for at in range(0, len(a), 64) for x in a[at : at + 64][::-1]]
    file.add("reverse_static", "shared", "reverse_static", [source("b32", a, "in"), target("b32", out, "out")],
             grid=(3,), block=(64,), needs=["barrier"], section="5.1.7")  # fmt: skip
    for block in (50, 200):
        b = [rng.getrandbits(64) for _ in range(2 * block)]
        out = [x for at in range(0, len(b), block) for x in b[at : at + block][::-1]]
        file.add(f"reverse_dynamic_{block}", "shared", "reverse_dynamic",
                 [source("b64", b, "in"), target("b64", out, "out")], grid=(2,), block=(block,), shared=8 * block,
                 needs=["barrier"], section="5.1.7")  # fmt: skip
    out = []
    for t in range(32):
        short = t + 0xABC0 if t < 31 else 0
        after = t + 1 | 0x80 if t < 31 else 0x5A
        row = struct.pack("<IIdIIIIII", t | 0x80, after, float(t), short, 0, t, t ^ FULL, t * t, 16)
        out += words(row)
    file.add("separate_arrays", "shared", "separate_arrays", [target("b32", out, "out")], block=(32,), shared=128,
             needs=["barrier", "fp64"], section="5.1.7")  # fmt: skip


def shared_addresses(file: CaseFile) -> None:
    rng = random.Random("addresses")
    a = [rng.getrandbits(32) for _ in range(64)]
    special = a[0] + a[63] + a[1] & FULL
    out = []
    for t in range(64):
        x = (a[63 - t] + special & FULL) ^ special
        out.append(x + 0x600DCAFE + 4 * (t ^ 63) & FULL)
    file.add("name_and_arithmetic", "shared", "name_and_arithmetic",
             [source("b32", a, "in"), target("b32", out, "out")], block=(64,), needs=["barrier"],
             section="5.1.7")  # fmt: skip
    out = []
    for t in range(32):
        other = (t + 5) & 31
        out += [1001 * other, 4 * other, 0, other]
    file.add("addresses_as_data", "shared", "addresses_as_data", [target("b32", out, "out")], block=(32,),
             needs=["barrier"], section="5.1.7")  # fmt: skip
    b = [rng.getrandbits(32) for _ in range(32)]
    out = []
    for t in range(32):
        out += [3 * sum(b) & FULL, sum(b[: t + 1]) & FULL]
    file.add("pointer_to_function", "shared", "pointer_to_function",
             [source("b32", b, "in"), target("b32", out, "out")], block=(32,), needs=["barrier"],
             section="9.7.9.20")  # fmt: skip
    file.add("module_scope", "shared", "module_scope", [target("b32", [3 * t + 1000 for t in range(64)], "out")],
             block=(64,), needs=["barrier"], section="5.1.7")  # fmt: skip


def tiles(file: CaseFile) -> None:
    rng = random.Random("tiles")
    width, height = 48, 32
    a = [rng.getrandbits(32) for _ in range(width * height)]
    a = [x if not F32.is_nan(x) else t for t, x in enumerate(a)]
    out = [a[row * width + column] for column in range(width) for row in range(height)]
    file.add("transpose", "shared", "transpose",
             [source("b32", a, "in"), target("b32", out, "out"), value("u32", width), value("u32", height)],
             grid=(3, 2), block=(16, 16), needs=["barrier"], section="5.1.7")  # fmt: skip
    n = 24
    left, right = ([rng.randrange(-20, 20) for _ in range(n * n)] for _ in range(2))
    product = [sum(left[i * n + k] * right[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]

    def floats(numbers: Sequence[int]) -> list[int]:
        return [F32.of(x) for x in numbers]

    file.add("matmul", "shared", "matmul",
             [source("f32", floats(left), "a"), source("f32", floats(right), "b"), target("f32", floats(product), "c"),
              value("u32", n)], grid=(3, 3), block=(8, 8), needs=["barrier"], section="5.1.7",
             note="Small integers, so that every sum is exact.")  # fmt: skip
