"""Kernel arguments of the Python API: numbers and arrays to bytes, by the parameter's declared type."""

from __future__ import annotations

import operator
import re
import struct
from typing import TYPE_CHECKING, Any

from zluda.core.errors import invalid_value

if TYPE_CHECKING:
    from zluda.ptx.tree import Variable

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_integer = re.compile(r"[us](8|16|32|64)")


def argument_bytes(value: Any, declared: Variable, size: int, index: int, kernel: str) -> bytes:
    """The `size` bytes of a parameter that was declared so.

    f16, f32 and f64 take any real number; integer types take integers and floats without a fraction, unsigned ones
    negative integers too (CUDA C's `int` is .u32 in PTX); .bN and structures take integers as bits, Python floats as
    f32 or f64 where they have that size, and numpy scalars of their size. Bytes-like objects of the right size fit
    everything.
    Raises TypeError for what is no such value, and CUDA_ERROR_INVALID_VALUE for one out of range or of another size.
    """
    try:
        data = _convert(value, declared, size)
    except (TypeError, OverflowError) as error:
        kind = "".join(f"[{extent}]" for extent in declared.shape)
        vector = f".v{declared.vector} " if declared.vector > 1 else ""
        message = f"argument {index} of {kernel} (parameter {vector}.{declared.type}{kind}): {error}"
        if isinstance(error, TypeError):
            raise TypeError(message) from error
        raise invalid_value(message) from error
    if len(data) != size:
        raise invalid_value(f"argument {index} of {kernel} has {size} bytes, not {len(data)}")
    return data


def _convert(value: Any, declared: Variable, size: int) -> bytes:
    plain = declared.vector == 1 and not declared.shape
    address = getattr(value, "device_address", None)
    if address is not None:
        if plain and declared.type.startswith("f"):
            raise TypeError("an array is passed by address, which this parameter does not take")
        return _bits(int(address), size)
    scalar = _scalar(value)
    number = value if scalar is None else scalar
    if not isinstance(number, (int, float)) and (data := _buffer(value, plain)) is not None:
        return data
    if plain and declared.type in ("f16", "f32", "f64"):
        return struct.pack(_FLOATS[size], _real(number))
    if plain and (match := _integer.fullmatch(declared.type)):
        return _integral(number, int(match[1]), signed=declared.type[0] == "s")
    if scalar is not None:
        data = value.tobytes()
        assert isinstance(data, bytes)
        return data
    if isinstance(number, float):
        if size not in (4, 8):
            raise TypeError(f"a Python float for {size} bytes: give the bytes or a numpy scalar")
        return struct.pack(_FLOATS[size], number)
    return _bits(_index(number), size)


def _scalar(value: Any) -> Any:
    """The Python number of a numpy scalar or array without dimensions; None for everything else."""
    if getattr(value, "shape", None) == () and hasattr(value, "dtype") and value.dtype.kind in "biufc":
        return value.item()
    return None


def _buffer(value: Any, plain: bool) -> bytes | None:
    """What a bytes-like object holds; None for what is none. Not an array in host memory for a pointer."""
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if plain and view.ndim and hasattr(value, "dtype"):
        raise TypeError("a numpy array lies in host memory; Gpu.array() makes one on the device")
    return view.tobytes()


def _real(number: Any) -> float:
    if isinstance(number, (str, complex)) or not (hasattr(number, "__float__") or hasattr(number, "__index__")):
        raise TypeError(f"{_what(number)} is no real number")
    return float(number)


def _integral(number: Any, bits: int, *, signed: bool) -> bytes:
    if isinstance(number, float):
        if not number.is_integer():
            raise TypeError(f"{number!r} is no integer")
        number = int(number)
    whole = _index(number)
    most = (1 << bits - signed) - 1
    if not -1 << bits - 1 <= whole <= most:
        raise OverflowError(f"{whole} is out of range, {-1 << bits - 1} to {most}")
    return whole.to_bytes(bits // 8, "little", signed=whole < 0)


def _bits(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little", signed=number < 0)


def _index(number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{_what(number)} is no integer") from None


def _what(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
