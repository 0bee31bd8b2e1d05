"""The module's data block: one allocation that holds every .global and .const variable, and its initial image."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zluda.compiler.lower.values import rounded
from zluda.ptx.errors import PtxError, PtxUnsupported
from zluda.ptx.layout import SIZES, align_of, dimensions, size_of
from zluda.ptx.source import Source
from zluda.ptx.tree import Float, Initialiser, Integer, Linkage, Space, SymbolAddress, Variable

FUNCTION_ID_STEP = 16
"""Function addresses are numbers: step times position in the module, counted from 1, so that none is null."""

_OPAQUE = ("texref", "samplerref", "surfref")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable lies in its block. Bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class DataLayout:
    """Places of all variables of a module, the same whichever kernels are lowered."""

    places: Mapping[str, Place]
    size: int
    align: int
    const_bytes: int
    variables: tuple[Variable, ...]
    functions: Mapping[str, int]
    """Function name to the number that is its address."""


def layout(variables: Iterable[Variable], functions: Iterable[str] = ()) -> DataLayout:
    """Places for the module's variables in the order they are declared. Externs have none, nor has what is opaque."""
    places: dict[str, Place] = {}
    placed: list[Variable] = []
    offset, const_bytes, block_align = 0, 0, 16
    for variable in variables:
        if variable.space not in (Space.GLOBAL, Space.CONST) or variable.type in _OPAQUE:
            continue
        if variable.linkage is Linkage.EXTERN or variable.name in places:
            continue
        # Vectors and compilers' wide accesses want no less than the largest access of 16 bytes for what can hold one.
        align, size = align_of(variable), size_of(variable)
        if size >= 16:
            align = max(align, 16)
        offset = -(-offset // align) * align
        places[variable.name] = Place(offset, size)
        placed.append(variable)
        offset += size
        block_align = max(block_align, align)
        if variable.space is Space.CONST:
            const_bytes += size
    numbers = {name: FUNCTION_ID_STEP * (index + 1) for index, name in enumerate(dict.fromkeys(functions))}
    return DataLayout(places, -(-offset // 16) * 16, block_align, const_bytes, tuple(placed), numbers)


class _Image:
    def __init__(self, found: DataLayout, base: int, source: Source, symbols: Mapping[str, int]) -> None:
        self.layout, self.base, self.source, self.symbols = found, base, source, symbols
        self.data = bytearray(found.size)

    def error(self, variable: Variable, message: str, hint: str | None = None) -> PtxError:
        return PtxUnsupported(self.source, variable.offset, f"{variable.name}: {message}", hint=hint)

    def fill(self, variable: Variable, at: int, value: Initialiser, shape: tuple[int, ...]) -> None:
        """Write one initialiser for a sub-array of the given shape; missing elements are zero."""
        size = SIZES[variable.type]
        if not isinstance(value, tuple):
            self.scalar(variable, at, value)
            return
        if not shape:
            if len(value) > 1:
                raise self.error(variable, "more values than the variable has elements")
            for item in value:
                self.fill(variable, at, item, ())
            return
        step = size
        for extent in shape[1:]:
            step *= extent
        # A flat list may fill an array of several dimensions in order.
        flat = len(shape) > 1 and not any(isinstance(item, tuple) for item in value)
        inner: tuple[int, ...] = () if flat else shape[1:]
        for index, item in enumerate(value):
            self.fill(variable, at + index * (size if flat else step), item, inner)

    def scalar(self, variable: Variable, at: int, value: Initialiser) -> None:
        size = SIZES[variable.type]
        if isinstance(value, Integer):
            if variable.type[0] == "f" and value.value != 0:
                packed = struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], float(value.value))
                self.put(variable, at, packed)
                return
            number = value.value
        elif isinstance(value, Float):
            number = rounded(value, size * 8) if variable.type[0] == "f" else value.bits
            if variable.type[0] != "f" and value.width != size * 8:
                number = rounded(value, size * 8)
        elif isinstance(value, SymbolAddress):
            number = self.address(variable, value)
            if value.mask is not None:
                shift = (value.mask & -value.mask).bit_length() - 1
                number = (number & value.mask) >> shift
            elif size not in (8,):
                raise self.error(variable, f"an address does not fit .{variable.type}")
        else:
            raise self.error(variable, "an initialiser of this kind is not handled")
        self.put(variable, at, (number & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def put(self, variable: Variable, at: int, data: bytes) -> None:
        place = self.layout.places[variable.name]
        if at + len(data) > place.offset + place.size:
            raise self.error(variable, "more values than the variable has elements")
        self.data[at : at + len(data)] = data

    def address(self, variable: Variable, symbol: SymbolAddress) -> int:
        place = self.layout.places.get(symbol.name)
        if place is not None:
            return self.base + place.offset + symbol.offset
        if symbol.name in self.layout.functions:
            return self.layout.functions[symbol.name] + symbol.offset
        if symbol.name in self.symbols:
            return self.symbols[symbol.name] + symbol.offset
        raise self.error(
            variable,
            f"its initialiser names {symbol.name}, which this module does not define",
            "link the module with the one that defines it",
        )


def build(found: DataLayout, base_address: int, source: Source, symbols: Mapping[str, int] | None = None) -> bytes:
    """The initial image of the data block for an allocation at `base_address`.

    `symbols` holds addresses of variables defined elsewhere. Raises PtxUnsupported for an address that nothing defines.
    """
    image = _Image(found, base_address, source, symbols or {})
    for variable in found.variables:
        if variable.initialiser is None:
            continue
        shape = dimensions(variable)
        if variable.vector != 1:
            shape = (*shape, variable.vector)
        image.fill(variable, found.places[variable.name].offset, variable.initialiser, shape)
    return bytes(image.data)
