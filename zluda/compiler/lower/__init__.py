"""PTX tree to LLVM IR text: functions, registers, memory and calls of the kernels asked for and what they reach."""

from zluda.compiler.lower.data import DataLayout
from zluda.compiler.lower.module import Lowered, lower

__all__ = ["DataLayout", "Lowered", "lower"]
