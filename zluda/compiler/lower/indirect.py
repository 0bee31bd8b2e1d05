"""Which functions a call through a register may reach: those of its signature whose address is taken in the module."""

from __future__ import annotations

import re
from functools import cached_property

from zluda.compiler.lower.body import Body
from zluda.ptx.index import ModuleIndex
from zluda.ptx.layout import element_size, size_of
from zluda.ptx.tree import Group, Initialiser, Instruction, Name, SymbolAddress, Variable

_moved = re.compile(r"\bmov\.[ub]64\s+[^,;]+,\s*([A-Za-z_$][\w$]*)", re.ASCII)

Shape = tuple[tuple[int, ...], tuple[int, ...]]
"""Bytes of the results and of the parameters, scalars negative so that they are not taken for aggregates."""


class Candidates:
    """Functions of a module that calls through registers may reach."""

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index

    @cached_property
    def taken(self) -> tuple[str, ...]:
        """Functions whose address is taken, anywhere in the module: a kernel may be handed them by another."""
        found: dict[str, None] = {}
        for variable in self.index.variables.values():
            for name in _symbols(variable.initialiser):
                found[name] = None
        found.update(dict.fromkeys(_moved.findall(self.index.source.text)))
        spans = self.index.functions
        return tuple(name for name in found if name in spans and not spans[name].entry)

    def of_call(self, body: Body, instruction: Instruction) -> tuple[str, ...]:
        """Functions that a call may reach: those of its list, or those that fit its prototype."""
        last = instruction.operands[-1]
        if isinstance(last, Name):
            if last.name in body.targets:
                return body.targets[last.name]
            prototype = body.prototypes.get(last.name)
            if prototype is not None:
                wanted = (_sizes(prototype.returns), _sizes(prototype.parameters))
                return tuple(name for name in self.taken if self._shape(name) == wanted)
        groups = [len(o.items) for o in instruction.operands if isinstance(o, Group)]
        return tuple(n for n in self.taken if sum(map(len, self._shape(n))) == sum(groups))

    def _shape(self, name: str) -> Shape:
        function = self.index.entry_signature(name)
        return _sizes(function.returns), _sizes(function.parameters)


def _sizes(variables: tuple[Variable, ...]) -> tuple[int, ...]:
    return tuple(size_of(v) if v.shape else -element_size(v) for v in variables)


def _symbols(value: Initialiser | None) -> list[str]:
    if isinstance(value, SymbolAddress):
        return [value.name]
    if isinstance(value, tuple):
        return [name for item in value for name in _symbols(item)]
    return []
