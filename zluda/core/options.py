"""CUjit_option: what a module may be loaded with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zluda.core.errors import CudaError, invalid_value

MAX_REGISTERS = 0
THREADS_PER_BLOCK = 1
WALL_TIME = 2
INFO_LOG_BUFFER = 3
INFO_LOG_BUFFER_SIZE_BYTES = 4
ERROR_LOG_BUFFER = 5
ERROR_LOG_BUFFER_SIZE_BYTES = 6
OPTIMIZATION_LEVEL = 7
TARGET_FROM_CUCONTEXT = 8
TARGET = 9
FALLBACK_STRATEGY = 10
GENERATE_DEBUG_INFO = 11
LOG_VERBOSE = 12
GENERATE_LINE_INFO = 13
CACHE_MODE = 14
GLOBAL_SYMBOL_NAMES = 17
GLOBAL_SYMBOL_ADDRESSES = 18
GLOBAL_SYMBOL_COUNT = 19
_LAST = 35

_PREFERENCES = {
    MAX_REGISTERS,
    THREADS_PER_BLOCK,
    WALL_TIME,
    TARGET_FROM_CUCONTEXT,
    TARGET,
    FALLBACK_STRATEGY,
    GENERATE_DEBUG_INFO,
    LOG_VERBOSE,
    GENERATE_LINE_INFO,
    CACHE_MODE,
    *range(15, 17),
    *range(20, _LAST + 1),
}
"""Options that change no result here: registers, target and cache mode are the device compiler's business, and the
ones for linking NVVM code (LTO, FTZ, …) have no effect on PTX, as in CUDA."""
_SYMBOLS = {GLOBAL_SYMBOL_NAMES, GLOBAL_SYMBOL_ADDRESSES, GLOBAL_SYMBOL_COUNT}


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
        """
        error_log = info_log = False
        optimisation = 4
        sizes = dict(options)
        for option, value in sizes.items():
            if option == ERROR_LOG_BUFFER:
                error_log = value != 0 and sizes.get(ERROR_LOG_BUFFER_SIZE_BYTES, 0) > 0
            elif option == INFO_LOG_BUFFER:
                info_log = value != 0
            elif option == OPTIMIZATION_LEVEL:
                if not 0 <= value <= 4:
                    raise invalid_value(f"CU_JIT_OPTIMIZATION_LEVEL of {value}")
                optimisation = value
            elif option in _SYMBOLS:
                raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"JIT option {option} is not built")
            elif option not in _PREFERENCES and option not in (INFO_LOG_BUFFER_SIZE_BYTES, ERROR_LOG_BUFFER_SIZE_BYTES):
                raise invalid_value(f"no JIT option {option}")
        return cls(error_log, info_log, optimisation)
