"""The desk of one instruction: what a handler may ask of the function it is lowered in, and how handlers are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NoReturn

from zluda.compiler.target.base import Target
from zluda.ptx.tree import Instruction, Operand

Handler = Callable[["Context"], None]

HANDLERS: dict[str, Handler] = {}
"""Opcode name (`add`) to its handler."""

TYPES = frozenset(
    {
        "u8",
        "s8",
        "b8",
        "u16",
        "s16",
        "b16",
        "u32",
        "s32",
        "b32",
        "u64",
        "s64",
        "b64",
        "b128",
        "f16",
        "f16x2",
        "bf16",
        "bf16x2",
        "tf32",
        "f32",
        "f64",
        "f32x2",
        "pred",
        "u16x2",
        "s16x2",
        "u8x4",
        "s8x4",
        "e4m3",
        "e5m2",
        "e4m3x2",
        "e5m2x2",
        "e2m1x2",
        "e2m3x2",
        "e3m2x2",
        "ue8m0x2",
        "b1",
        "b4",
        "u4",
        "s4",
    }
)
"""Modifiers that name a type."""

LLVM_TYPES: Mapping[str, str] = {
    **{f"{k}{n}": f"i{n}" for k in "usb" for n in (8, 16, 32, 64)},
    "f16": "half",
    "bf16": "i16",
    "f16x2": "<2 x half>",
    "bf16x2": "<2 x i16>",
    "u16x2": "<2 x i16>",
    "s16x2": "<2 x i16>",
    "tf32": "i32",
    "f32": "float",
    "f64": "double",
    "f32x2": "<2 x float>",
    "pred": "i1",
}
"""PTX type to the LLVM type of its values, as `get` returns and `set` takes them."""


def lowers(*names: str) -> Callable[[Handler], Handler]:
    """Registers a handler for opcodes by name; a name has one handler."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"two handlers for the opcode {name}")
            HANDLERS[name] = handler
        return handler

    return register


class Context(ABC):
    """One instruction being lowered."""

    instruction: Instruction
    target: Target

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.instruction.opcode.name

    @property
    def mods(self) -> tuple[str, ...]:
        return self.instruction.opcode.modifiers

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    @property
    def types(self) -> tuple[str, ...]:
        """All type modifiers in order."""
        return tuple(m for m in self.instruction.opcode.modifiers if m in TYPES)

    @property
    def type(self) -> str:
        """The last type modifier; refuses an instruction without one."""
        for modifier in reversed(self.instruction.opcode.modifiers):
            if modifier in TYPES:
                return modifier
        self.unsupported("the instruction names no type")

    def has(self, modifier: str) -> bool:
        return modifier in self.instruction.opcode.modifiers

    # --- operands ---

    @abstractmethod
    def get(self, operand: Operand, type: str) -> str:
        """The LLVM value of an operand, of the LLVM type of a PTX type (LLVM_TYPES).

        Registers are bitcast from what they hold and truncated when wider (section 9.4.1); constants follow section
        4.5: integers are cut to the type, floating-point constants converted to it. Takes `!p`, `-r`, special
        registers, WARP_SZ, and names of variables and functions (their address) as well.
        """

    @abstractmethod
    def set(self, operand: Operand, type: str, value: str) -> None:
        """Writes a register with a value of a PTX type, extended by the type's sign if it is wider. `_` drops it."""

    @abstractmethod
    def pointer(self, address: Operand, space: str, access_bytes: int) -> tuple[str, str]:
        """(value, LLVM pointer type) for an address operand; space is `global`, `shared`, … or `generic`."""

    # --- emission ---

    @abstractmethod
    def op(self, text: str) -> str:
        """Appends an instruction with a result and returns the result's name."""

    @abstractmethod
    def void(self, text: str) -> None:
        """Appends an instruction without a result (not a terminator)."""

    @abstractmethod
    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Declares and calls an LLVM intrinsic; arguments are (LLVM type, value); `void` gives an empty string."""

    @abstractmethod
    def builtin(
        self, name: str, result: str, *arguments: tuple[str, str], convergent: bool = False, pure: bool = False
    ) -> str:
        """Declares and calls an external function in the target's convention; `pure` ones touch no memory."""

    @abstractmethod
    def declare(self, name: str, text: str) -> None:
        """Adds a module-level line once, by name: a declaration or a global such as a printf format."""

    # --- control flow inside a handler ---

    @abstractmethod
    def block(self, hint: str = "b") -> str:
        """A fresh label."""

    @abstractmethod
    def start(self, label: str) -> None:
        """Begins the block of a label; falls through to it when the current block has no terminator yet."""

    @abstractmethod
    def branch(self, label: str) -> None: ...

    @abstractmethod
    def cond(self, condition: str, then: str, otherwise: str) -> None: ...

    @abstractmethod
    def slot(self, llvm_type: str, align: int = 0) -> str:
        """An alloca in the function's entry block; its pointer (`ptr`, the local space)."""

    def flag(self, name: str) -> str:
        """The function's i32 slot of this name (`CC.CF`), the same for all its instructions; its pointer."""
        self.unsupported(f"{name} is not kept")

    # --- the kernel around ---

    @property
    @abstractmethod
    def flat(self) -> bool:
        """Whether the kernel runs as a 1-D block with subgroups of 32 (KernelInfo.flat)."""

    @abstractmethod
    def kernel_needs(self, capability: str) -> None:
        """Records a capability id that the kernel uses (`fp64`, `atomics.int64`, `barrier`, `warp`)."""

    @abstractmethod
    def unsupported(self, reason: str, hint: str | None = None) -> NoReturn:
        """Raises PtxUnsupported at this instruction."""


def llvm_type(type: str) -> str:
    """The LLVM type of a PTX type; KeyError for one that has none (b128, packed narrow floats)."""
    return LLVM_TYPES[type]


def width(type: str) -> int:
    """Bits of a PTX scalar or packed type."""
    return _WIDTHS[type]


_WIDTHS: Mapping[str, int] = {
    **{f"{k}{n}": n for k in "usb" for n in (8, 16, 32, 64)},
    "b128": 128,
    "f16": 16,
    "bf16": 16,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "u8x4": 32,
    "s8x4": 32,
    "tf32": 32,
    "f32": 32,
    "f64": 64,
    "f32x2": 64,
    "pred": 1,
    "e4m3": 8,
    "e5m2": 8,
    "e4m3x2": 16,
    "e5m2x2": 16,
}

__all__ = [
    "HANDLERS",
    "LLVM_TYPES",
    "TYPES",
    "Context",
    "Handler",
    "llvm_type",
    "lowers",
    "width",
]
