"""CUjit_option: what a module may be loaded with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zluda.core.errors import CudaError, invalid_value
from zluda.spec.types import enum

_OPTIONS = enum("CUjit_option")
_NAMES = {number: name for name, number in _OPTIONS.items() if name != "CU_JIT_NUM_OPTIONS"}
_SYMBOLS = {"CU_JIT_GLOBAL_SYMBOL_NAMES", "CU_JIT_GLOBAL_SYMBOL_ADDRESSES", "CU_JIT_GLOBAL_SYMBOL_COUNT"}


@dataclass(frozen=True, slots=True)
class JitOptions:
    """The options that have an effect."""

    error_log: bool = False
    """A CU_JIT_ERROR_LOG_BUFFER was given: every kernel is compiled at load, so that the log has all errors."""
    info_log: bool = False
    optimisation: int = 4
    """CU_JIT_OPTIMIZATION_LEVEL, 0 to 4."""

    @classmethod
    def parse(cls, options: Iterable[tuple[int, int]]) -> JitOptions:
        """Options as cuModuleLoadDataEx takes them: CUjit_option numbers with their values (pointers as numbers).

        CUDA_ERROR_INVALID_VALUE for unknown options; CUDA_ERROR_NOT_SUPPORTED for global symbols, which are not built.
        All others change no result here: registers, target and cache mode are the device compiler's business, and the
        ones for linking NVVM code (LTO, FTZ, …) have no effect on PTX, as in CUDA.
        """
        error_log = info_log = False
        optimisation = 4
        values = dict(options)
        for number, value in values.items():
            match _NAMES.get(number):
                case "CU_JIT_ERROR_LOG_BUFFER":
                    size = values.get(_OPTIONS["CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"], 0)
                    error_log = value != 0 and size > 0
                case "CU_JIT_INFO_LOG_BUFFER":
                    info_log = value != 0
                case "CU_JIT_OPTIMIZATION_LEVEL":
                    if not 0 <= value <= 4:
                        raise invalid_value(f"CU_JIT_OPTIMIZATION_LEVEL of {value}")
                    optimisation = value
                case None:
                    raise invalid_value(f"no JIT option {number}")
                case name if name in _SYMBOLS:
                    raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"{name} is not built")
        return cls(error_log, info_log, optimisation)
