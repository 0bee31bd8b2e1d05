"""What a target has to say for itself: everything that differs between vendors when PTX becomes LLVM IR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zluda.backend.info import TargetInfo

if TYPE_CHECKING:
    from zluda.compiler.lower.context import Context


class UnknownTarget(ValueError):
    """No compiler target goes by this name."""


class Target(ABC):
    """One kind of device code. Methods that take a Context emit code there and return the name of an LLVM value.

    Values are `i32` unless a method says otherwise; dimensions are 0, 1, 2 for x, y, z. Names of instructions,
    scopes and registers are those of the PTX ISA.
    """

    name: str
    """`TargetInfo.name`."""
    triple: str
    datalayout: str
    kernel_convention: str
    """LLVM calling convention of kernels."""
    function_convention: str
    """LLVM calling convention of device functions and of builtins."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def has(self, feature: str) -> bool:
        """Whether the device's TargetInfo.features names this feature."""
        return feature in self.info.features

    @abstractmethod
    def space(self, name: str) -> int:
        """LLVM address space of `global`, `const`, `local`, `shared`, `generic`; KeyError for another name."""

    @abstractmethod
    def kernel_metadata(
        self, *, subgroup_size: int | None, required_block: tuple[int, int, int] | None
    ) -> Mapping[str, str]:
        """Metadata attached to a kernel: kind to node text."""

    @abstractmethod
    def sync_scope(self, scope: str) -> str:
        """`syncscope("…") ` with its trailing blank, or nothing, for the PTX scopes `cta`, `cluster`, `gpu`, `sys`."""

    # --- ids (section 10) ---

    @abstractmethod
    def thread_id(self, c: Context, dimension: int) -> str:
        """%tid as the device's own grid has it; a flat kernel computes it from the linear id instead."""

    @abstractmethod
    def block_size(self, c: Context, dimension: int) -> str:
        """%ntid as the device's own grid has it."""

    @abstractmethod
    def block_id(self, c: Context, dimension: int) -> str:
        """%ctaid."""

    @abstractmethod
    def grid_size(self, c: Context, dimension: int) -> str:
        """%nctaid."""

    @abstractmethod
    def linear_id(self, c: Context) -> str:
        """The thread's number in its block, x fastest."""

    @abstractmethod
    def lane_id(self, c: Context) -> str:
        """%laneid."""

    @abstractmethod
    def special(self, c: Context, name: str, component: str | None) -> tuple[str, str] | None:
        """(LLVM type, value) of any other special register, its name with the `%`; None when the target has none."""

    # --- synchronisation ---

    @abstractmethod
    def barrier(self, c: Context) -> None:
        """All threads of the block arrive before any leaves; orders their accesses to global and shared memory."""

    @abstractmethod
    def warp_barrier(self, c: Context) -> None:
        """The active threads of the warp meet; orders their accesses to global and shared memory."""

    @abstractmethod
    def fence(self, c: Context, scope: str, order: str) -> None:
        """A fence with a PTX scope and an LLVM ordering: `acquire`, `release`, `acq_rel` or `seq_cst`."""

    @abstractmethod
    def block_reduce(self, c: Context, operation: str, predicate: str) -> str:
        """`and`, `or` or `popc` of an i1 over the block's threads: i1 for `and` and `or`, i32 for `popc`."""

    # --- warps ---

    @abstractmethod
    def ballot(self, c: Context, predicate: str) -> str:
        """Mask of the active lanes whose i1 is true."""

    @abstractmethod
    def shuffle(self, c: Context, value: str, lane: str) -> str:
        """The i32 that another lane of the warp passes; unpredictable when that lane is not active."""

    # --- arithmetic ---

    @abstractmethod
    def math(self, c: Context, function: str, type: str, *arguments: str) -> str:
        """A function on `float` or `double`: `sqrt`, `sin`, `cos`, `exp2`, `log2`, `tanh`.

        sqrt is correctly rounded; the others keep within the PTX ISA's bounds for the .approx instructions.
        """

    @abstractmethod
    def divide(self, c: Context, type: str, a: str, b: str) -> str:
        """The correctly rounded quotient of two `float` or `double` values."""

    @abstractmethod
    def multiply_high(self, c: Context, sign: bool, a: str, b: str) -> str:
        """The upper 64 bits of the product of two i64."""

    @property
    @abstractmethod
    def float_atomics(self) -> Sequence[str]:
        """LLVM types on which `atomicrmw fadd` may be emitted; the rest are loops around compare-and-swap."""

    @abstractmethod
    def trap(self, c: Context) -> None:
        """Ends the launch with an error, as `trap` does; control does not come back."""
