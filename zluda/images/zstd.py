"""Zstandard frames (RFC 8878), as fat binaries hold PTX: in plain Python, since a module has one text to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zluda.images.contents import ImageError

MAGIC = b"\x28\xb5\x2f\xfd"

_PAD = 8
"""Zeros before a backward stream, which may be read past its start."""

# Length codes (section 3.1.1.3.2.1.1): their lowest value and the bits added to it.
_LITERALS = [(n, 0) for n in range(16)] + [
    (16, 1), (18, 1), (20, 1), (22, 1), (24, 2), (28, 2), (32, 3), (40, 3), (48, 4), (64, 6),
    *((1 << n, n) for n in range(7, 17)),
]  # fmt: skip
_MATCHES = [(n + 3, 0) for n in range(32)] + [
    (35, 1), (37, 1), (39, 1), (41, 1), (43, 2), (47, 2), (51, 3), (59, 3), (67, 4), (83, 4), (99, 5),
    *(((1 << n) + 3, n) for n in range(7, 17)),
]  # fmt: skip
# The distributions that need not be told (section 3.1.1.3.2.2).
_DEFAULT_LITERALS = (6, [4, 3, *[2] * 11, 1, 1, 1, *[2] * 9, 3, 2, *[1] * 5, *[-1] * 4])
_DEFAULT_MATCHES = (6, [1, 4, 3, *[2] * 6, *[1] * 37, *[-1] * 7])
_DEFAULT_OFFSETS = (5, [*[1] * 6, 2, 2, 2, *[1] * 15, *[-1] * 5])


class _State(NamedTuple):
    """A cell of an FSE table: what it stands for, and how the next one is found."""

    symbol: int
    bits: int
    base: int


class _Fse(NamedTuple):
    accuracy: int
    cells: list[_State]


class _Huffman(NamedTuple):
    bits: int
    cells: list[tuple[int, int]]
    """Symbol and length by the next `bits` bits."""


class _Backward:
    """Bits from the end of a stream to its start; the highest set bit of the last byte only marks the end."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        if not data or not data[-1]:
            raise ImageError("a compressed stream has no end")
        self.data = bytes(_PAD) + data
        self.at = (len(self.data) - 1) * 8 + data[-1].bit_length() - 1

    def read(self, bits: int) -> int:
        self.at -= bits
        at = self.at
        if at < 0:
            raise ImageError("a compressed stream is too short")
        start = at >> 3
        return int.from_bytes(self.data[start : start + 5], "little") >> (at & 7) & ((1 << bits) - 1)

    @property
    def left(self) -> int:
        """Bits; negative once zeros before the start were read."""
        return self.at - _PAD * 8


def decompress(data: bytes, size: int) -> bytes:
    """The `size` bytes in a frame. Raises ImageError."""
    try:
        out = _Frame(data, size).out
    except IndexError:
        raise ImageError("compressed data is damaged or cut off") from None
    if len(out) != size:
        raise ImageError(f"compressed data holds {len(out)} bytes, not the {size} announced")
    return bytes(out)


class _Frame:
    def __init__(self, data: bytes, size: int) -> None:
        if not data.startswith(MAGIC):
            raise ImageError("compressed data is no Zstandard frame")
        self.out = bytearray()
        self.limit = size
        self.huffman: _Huffman | None = None
        self.tables: list[_Fse | None] = [None, None, None]
        self.offsets = [1, 4, 8]
        descriptor = data[4]
        single = descriptor >> 5 & 1
        at = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
        last = False
        while not last:
            header = int.from_bytes(data[at : at + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            at += 3
            stored = 1 if kind == 1 else length
            block = data[at : at + stored]
            if len(block) < stored or kind == 3:
                raise ImageError("compressed data is cut off")
            at += stored
            if kind == 2:
                self._block(block)
            else:
                self.out += block * (length if kind == 1 else 1)
            if len(self.out) > self.limit:
                raise ImageError("compressed data is longer than announced")

    def _block(self, block: bytes) -> None:
        literals, at = self._literals(block)
        count = block[at]
        at += 1
        if count == 255:
            count = block[at] + (block[at + 1] << 8) + 0x7F00
            at += 2
        elif count >= 128:
            count = (count - 128 << 8) + block[at]
            at += 1
        if not count:
            self.out += literals
            return
        modes = block[at]
        at += 1
        defaults = (_DEFAULT_LITERALS, _DEFAULT_OFFSETS, _DEFAULT_MATCHES)
        for place, (shift, default) in enumerate(zip((6, 4, 2), defaults, strict=True)):
            mode = modes >> shift & 3
            if mode == 0:
                self.tables[place] = _table(*default)
            elif mode == 1:
                self.tables[place] = _Fse(0, [_State(block[at], 0, 0)])
                at += 1
            elif mode == 2:
                accuracy, probabilities, used = _distribution(block[at:])
                self.tables[place] = _table(accuracy, probabilities)
                at += used
            elif self.tables[place] is None:
                raise ImageError("compressed data repeats a table that was not given")
        self._sequences(literals, count, _Backward(block[at:]))

    # --- literals (section 3.1.1.3.1) ---

    def _literals(self, block: bytes) -> tuple[bytes, int]:
        kind, form = block[0] & 3, block[0] >> 2 & 3
        if kind < 2:
            header = (1, 2, 1, 3)[form]
            size = int.from_bytes(block[:header], "little") >> (3 if header == 1 else 4)
            if kind == 1:
                return block[header : header + 1] * size, header + 1
            return block[header : header + size], header + size
        header, bits = ((3, 10), (3, 10), (4, 14), (5, 18))[form]
        sizes = int.from_bytes(block[:header], "little") >> 4
        size, stored = sizes & (1 << bits) - 1, sizes >> bits
        data = block[header : header + stored]
        if size > self.limit or len(data) < stored:
            raise ImageError("compressed literals are cut off")
        at = 0
        if kind == 2:
            self.huffman, at = _huffman(data)
        if self.huffman is None:
            raise ImageError("compressed data repeats a tree that was not given")
        if form == 0:
            return _decode(self.huffman, data[at:], size), header + stored
        part, starts = (size + 3) // 4, at + 6
        literals = b""
        for stream in range(4):
            length = int.from_bytes(data[at + stream * 2 : at + stream * 2 + 2], "little")
            end = starts + length if stream < 3 else len(data)
            literals += _decode(self.huffman, data[starts:end], part if stream < 3 else size - 3 * part)
            starts = end
        return literals, header + stored

    # --- sequences (sections 3.1.1.3.2, 3.1.1.4, 3.1.1.5) ---

    def _sequences(self, literals: bytes, count: int, stream: _Backward) -> None:
        (literal_bits, literal_cells), (offset_bits, offset_cells), (match_bits, match_cells) = (
            table for table in self.tables if table is not None
        )
        read, out, position = stream.read, self.out, 0
        literal, offset, match = (
            literal_cells[read(literal_bits)],
            offset_cells[read(offset_bits)],
            match_cells[read(match_bits)],
        )
        for left in range(count - 1, -1, -1):
            distance = (1 << offset.symbol) + read(offset.symbol)
            base, bits = _MATCHES[match.symbol]
            length = base + read(bits)
            base, bits = _LITERALS[literal.symbol]
            run = base + read(bits)
            if left:
                literal = literal_cells[literal.base + read(literal.bits)]
                match = match_cells[match.base + read(match.bits)]
                offset = offset_cells[offset.base + read(offset.bits)]
            distance = self._distance(distance, run)
            out += literals[position : position + run]
            position += run
            start = len(out) - distance
            if start < 0 or len(out) + length > self.limit:
                raise ImageError("compressed data points outside of itself")
            if distance >= length:
                out += out[start : start + length]
            else:
                piece = out[start:]
                out += (piece * (length // distance + 1))[:length]
        out += literals[position:]

    def _distance(self, value: int, run: int) -> int:
        """Values up to 3 stand for one of the latest offsets."""
        recent = self.offsets
        if value > 3:
            self.offsets = [value - 3, recent[0], recent[1]]
        else:
            place = value - 1 + (run == 0)
            if place:
                distance = recent[place] if place < 3 else recent[0] - 1
                if distance <= 0:
                    raise ImageError("compressed data has an offset of 0")
                self.offsets = [distance, recent[0], recent[2] if place == 1 else recent[1]]
        return self.offsets[0]


# --- entropy tables (section 4) ---


def _distribution(data: bytes) -> tuple[int, list[int], int]:
    """An FSE table's accuracy and probabilities, and the bytes they take."""
    bits, at = int.from_bytes(data[:128], "little"), 4
    accuracy = (bits & 15) + 5
    if accuracy > 9 or not data:
        raise ImageError("compressed data has a table that is too large")
    remaining, threshold, width = (1 << accuracy) + 1, 1 << accuracy, accuracy + 1
    found: list[int] = []
    while remaining > 1:
        if len(found) > 255 or at > len(data) * 8:
            raise ImageError("compressed data has a damaged table")
        short = 2 * threshold - 1 - remaining
        value = bits >> at & 2 * threshold - 1
        if value & threshold - 1 < short:
            value &= threshold - 1
            at += width - 1
        else:
            if value >= threshold:
                value -= short
            at += width
        found.append(value - 1)
        remaining -= abs(value - 1)
        while value == 1:
            more = bits >> at & 3
            at += 2
            found += [0] * more
            if more < 3:
                break
        while remaining < threshold and threshold > 1:
            width -= 1
            threshold >>= 1
    return accuracy, found, (at + 7) // 8


def _table(accuracy: int, probabilities: Sequence[int]) -> _Fse:
    size = 1 << accuracy
    symbols, high = [0] * size, size - 1
    for symbol, probability in enumerate(probabilities):
        if probability == -1:
            symbols[high] = symbol
            high -= 1
    at, step = 0, (size >> 1) + (size >> 3) + 3
    for symbol, probability in enumerate(probabilities):
        for _ in range(probability):
            symbols[at] = symbol
            at = at + step & size - 1
            while at > high:
                at = at + step & size - 1
    following = [abs(probability) for probability in probabilities]
    cells = []
    for symbol in symbols:
        number = following[symbol]
        following[symbol] += 1
        bits = accuracy - number.bit_length() + 1
        cells.append(_State(symbol, bits, (number << bits) - size))
    return _Fse(accuracy, cells)


def _weights(data: bytes) -> list[int]:
    """Two states that take turns, until the stream is used up."""
    accuracy, probabilities, used = _distribution(data)
    if accuracy > 6:
        raise ImageError("compressed data has a tree that is too large")
    cells = _table(accuracy, probabilities).cells
    stream = _Backward(data[used:])
    states = [cells[stream.read(accuracy)], cells[stream.read(accuracy)]]
    found: list[int] = []
    while len(found) < 255:
        state = states[len(found) & 1]
        found.append(state.symbol)
        following = cells[state.base + stream.read(state.bits)]
        if stream.left < 0:
            found.append(states[len(found) & 1].symbol)
            return found
        states[len(found) - 1 & 1] = following
    raise ImageError("compressed data has a damaged tree")


def _huffman(data: bytes) -> tuple[_Huffman, int]:
    """A Huffman tree and the bytes it takes."""
    first = data[0]
    if first < 128:
        weights, used = _weights(data[1 : 1 + first]), 1 + first
    else:
        count = first - 127
        used = 1 + (count + 1) // 2
        weights = [data[1 + n // 2] >> (0 if n & 1 else 4) & 15 for n in range(count)]
    total = sum(1 << weight >> 1 for weight in weights)
    bits = total.bit_length()
    rest = (1 << bits) - total
    if bits > 11 or not total or rest & rest - 1:
        raise ImageError("compressed data has a damaged tree")
    weights.append(rest.bit_length())
    cells: list[tuple[int, int]] = []
    for weight in range(1, bits + 1):
        for symbol, own in enumerate(weights):
            if own == weight:
                cells += [(symbol, bits + 1 - weight)] * (1 << weight >> 1)
    return _Huffman(bits, cells), used


def _decode(tree: _Huffman, data: bytes, size: int) -> bytes:
    stream = _Backward(data)
    bits, cells, padded, at = tree.bits, tree.cells, stream.data, stream.at
    mask = (1 << bits) - 1
    found = bytearray(size)
    for place in range(size):
        start = at - bits
        byte = start >> 3
        symbol, length = cells[int.from_bytes(padded[byte : byte + 3], "little") >> (start & 7) & mask]
        found[place] = symbol
        at -= length
    if at != _PAD * 8:
        raise ImageError("compressed literals do not end where they should")
    return bytes(found)
