"""LLVM IR as text: a module's lines and one function's blocks. Knows nothing of PTX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z$._][\w$.]*", re.ASCII)


def quoted(name: str) -> str:
    """A name as it stands behind @, % or a label's place."""
    if _BARE.fullmatch(name):
        return name
    escaped = "".join(
        ch if ch.isascii() and ch.isprintable() and ch not in '"\\' else f"\\{ord(ch):02X}" for ch in name
    )
    return f'"{escaped}"'


class ModuleWriter:
    """Collects declarations, functions and metadata, each once."""

    def __init__(self) -> None:
        self._declarations: dict[str, str] = {}
        self._functions: list[str] = []
        self._metadata: dict[str, int] = {}

    def declare(self, name: str, text: str) -> None:
        known = self._declarations.setdefault(name, text)
        if known != text:
            raise ValueError(f"{name} is declared in two ways:\n{known}\n{text}")

    def metadata(self, node: str) -> str:
        """`!7` for a node's text; equal nodes are one."""
        return f"!{self._metadata.setdefault(node, len(self._metadata))}"

    def add(self, function: str) -> None:
        self._functions.append(function)

    def render(self, triple: str, datalayout: str) -> str:
        parts = [f'target datalayout = "{datalayout}"\ntarget triple = "{triple}"']
        parts.extend(self._functions)
        parts.append("\n".join(self._declarations.values()))
        parts.append("\n".join(f"!{number} = {node}" for node, number in self._metadata.items()))
        return "\n\n".join(part for part in parts if part) + "\n"


class FunctionWriter:
    """One function: an entry block for allocas and what is computed once, then blocks in the order they are started."""

    def __init__(self) -> None:
        self._serial = 0
        self._allocas: list[str] = []
        self._prologue: list[str] = []
        self._lines: list[str] = []
        self._target = self._lines
        self.cut: dict[str, str] = {}
        """i32 values that are truncated i64 values, with what they were cut from."""
        self.open = False
        """Whether a block is open: started and without a terminator."""

    def fresh(self, hint: str = "v") -> str:
        self._serial += 1
        return f"{hint}{self._serial}"

    # --- instructions ---

    def op(self, text: str) -> str:
        name = f"%{self.fresh()}"
        self._target.append(f"  {name} = {text}")
        if text.startswith("trunc i64 ") and text.endswith(" to i32"):
            self.cut[name] = text[len("trunc i64 ") : -len(" to i32")]
        return name

    def void(self, text: str) -> None:
        self._target.append(f"  {text}")

    def alloca(self, llvm_type: str, align: int = 0, space: int = 0) -> str:
        name = f"%{self.fresh('s')}"
        suffix = (f", align {align}" if align else "") + (f", addrspace({space})" if space else "")
        self._allocas.append(f"  {name} = alloca {llvm_type}{suffix}")
        return name

    def named_alloca(self, name: str, llvm_type: str, space: int = 0) -> None:
        self._allocas.append(f"  {name} = alloca {llvm_type}" + (f", addrspace({space})" if space else ""))

    def begin_prologue(self) -> None:
        """What follows goes to the end of the entry block, until `end_prologue`."""
        self._target = self._prologue

    def end_prologue(self) -> None:
        self._target = self._lines

    # --- blocks ---

    def start(self, label: str) -> None:
        if self.open:
            self.branch(label)
        self._lines.append(f"{label}:")
        self.open = True

    def terminate(self, text: str) -> None:
        self._lines.append(f"  {text}")
        self.open = False

    def branch(self, label: str) -> None:
        self.terminate(f"br label %{label}")

    def cond(self, condition: str, then: str, otherwise: str) -> None:
        if then == otherwise:
            self.branch(then)
        else:
            self.terminate(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def render(self, header: str, first: str) -> str:
        """The whole definition; `first` is the label that the entry block goes on to."""
        return "\n".join(
            [header + " {", "entry:", *self._allocas, *self._prologue, f"  br label %{first}", *self._lines, "}"]
        )


def call_text(
    convention: str, result: str, name: str, arguments: Sequence[tuple[str, str]], attributes: str = ""
) -> str:
    listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
    return f"call {convention + ' ' if convention else ''}{result} @{quoted(name)}({listed}){attributes}"


def attachments(writer: ModuleWriter, nodes: Mapping[str, str]) -> str:
    return "".join(f" !{kind} {writer.metadata(node)}" for kind, node in nodes.items())
