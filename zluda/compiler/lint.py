"""The one table of LLVM constructs that the SPIR-V road refuses, and the lint that looks for them before emission.

Each construct was measured against LLVM 22's SPIR-V back end and Intel's CPU runtime: it aborts the process, makes an
invalid module, crashes or is refused by the device's compiler, or is silently wrong. A finding is always a defect of
the lowering, which has another form for each; `instead` names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from zluda.compiler.errors import REPORT, CompileError
from zluda.compiler.irtext import Function, Text, scan
from zluda.compiler.legalise import truncations


class Harm(Enum):
    """What the construct does when it gets through."""

    WRONG = "gives wrong results silently"
    ABORT = "aborts LLVM"
    REFUSED = "is refused, or crashes the device's compiler"
    INVALID = "makes an invalid module"


@dataclass(frozen=True, slots=True)
class Construct:
    """A refused construct. `find` is a pattern for one line, or a function from the text to line numbers."""

    name: str
    harm: Harm
    instead: str
    find: re.Pattern[str] | Callable[[Text], Iterable[int]]
    needles: tuple[str, ...] = ()
    """The pattern is tried only when one of these substrings occurs in the text at all; none: always."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A refused construct in a piece of IR."""

    construct: Construct
    function: str | None
    line: int
    """Of the IR, from 1."""
    text: str

    def __str__(self) -> str:
        where = f"@{self.function}" if self.function else "the module"
        return (
            f"{self.construct.name} in {where}, IR line {self.line}: {self.construct.harm.value}; "
            f"{self.construct.instead}\n    {self.text.strip()}"
        )


def _intrinsic(name: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Calls and declarations of `llvm.<name>`, whatever types follow."""
    return re.compile(rf"@llvm\.{name}(?=[.(])"), ("@llvm.",)


def _plain(pattern: str, *needles: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    return re.compile(pattern, re.MULTILINE), needles


# --- structural constructs --------------------------------------------------------------------------

CONVERGENT_BUILTIN = re.compile(
    r"^(?:_Z\d+)?(?:barrier|work_group_(?!size)|(?:intel_)?sub_group_|__spirv_ControlBarrier|__spirv_Group|__spirv_Subgroup)"
)
"""Builtins that every thread of a group takes part in, by mangled name; queries (`get_sub_group_size`) are not."""


def _missing_convergent(text: Text) -> Iterator[int]:
    """Calls that reach a barrier or subgroup builtin and are marked convergent neither themselves nor at the callee."""
    functions = text.functions
    collective = {
        call.callee
        for function in functions.values()
        for call in function.calls
        if CONVERGENT_BUILTIN.match(call.callee)
    }
    growing = bool(collective)
    while growing:
        found = {
            function.name
            for function in functions.values()
            if function.name not in collective and any(call.callee in collective for call in function.calls)
        }
        collective |= found
        growing = bool(found)
    marked = {
        name
        for name in collective
        if (function := functions.get(name)) is not None and text.has_attribute(function.header, "convergent")
    }
    for function in functions.values():
        for call in function.calls:
            if call.callee in collective - marked and not text.has_attribute(call.text, "convergent"):
                yield call.line


_SHARED_GLOBAL = re.compile(r'^@("[^"]*"|[\w.$-]+) = .*\baddrspace\(3\) (?:global|constant)\b')
_SHARED_PARAMETER = re.compile(r"\bptr addrspace\(3\)[^,%()]*(%[\w.$-]+)")
_SHARED_GEP = re.compile(r"(?:(%[\w.$-]+) = )?getelementptr\b[^,]*, ptr addrspace\(3\) ([@%][\w.$-]+)")
_SHARED_TO_INT = re.compile(r"\bptrtoint \(?ptr addrspace\(3\) ([@%][\w.$-]+)")
_INT_TO_SHARED = re.compile(r"\binttoptr\b.* to ptr addrspace\(3\)")


def _mixed_shared(text: Text) -> Iterator[int]:
    """Kernels that reach the shared block both by getelementptr and by ptrtoint and inttoptr."""
    blocks = {"@" + match[1] for _, line in text.globals if (match := _SHARED_GLOBAL.match(line))}
    for kernel in text.functions.values():
        if not kernel.kernel:
            continue
        gep = to_int = from_int = 0
        for function in text.reach(kernel.name):
            known = blocks | set(_SHARED_PARAMETER.findall(function.header.partition("(")[2]))
            for number, line in function.body:
                if "addrspace(3)" not in line:
                    continue
                for result, base in _SHARED_GEP.findall(line):
                    if base in known:
                        gep = gep or number
                        if result:
                            known.add(result)
                if any(base in known for base in _SHARED_TO_INT.findall(line)):
                    to_int = to_int or number
                if _INT_TO_SHARED.search(line):
                    from_int = from_int or number
        if gep and to_int and from_int:
            yield from_int


def _parameters(header: str) -> list[str]:
    """The parameters of a function header, split at top-level commas."""
    opening = header.index("(", header.index("@"))
    depth, start, parts = 0, opening + 1, []
    for index in range(opening, len(header)):
        character = header[index]
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
            if depth == 0:
                parts.append(header[start:index])
                break
        elif character == "," and depth == 1:
            parts.append(header[start:index])
            start = index + 1
    return [part.strip() for part in parts if part.strip()]


_ZEXT = re.compile(r" = zext (?:nneg )?[^%]*(%[\w.$-]+) to ")


def _zext_of_trunc(text: Text) -> Iterator[int]:
    """Zero extensions of truncated values, which `zluda.compiler.legalise` takes apart."""
    for function in text.functions.values():
        known = truncations([line for _, line in function.body])
        for number, line in function.body:
            if known and (match := _ZEXT.search(line)) is not None and match[1] in known:
                yield number


_BY_VALUE = re.compile(r"^(?:[\[{%]|<\{)|\bbyval\([^%]")


def _by_value(text: Text) -> Iterator[int]:
    """Functions that take structures or arrays by value, other than as byval pointers to a named structure."""
    for function in text.functions.values():
        if not function.name.startswith("llvm.") and any(map(_BY_VALUE.search, _parameters(function.header))):
            yield function.line


# --- the table --------------------------------------------------------------------------------------

REFUSED: tuple[Construct, ...] = (
    # Silently wrong.
    Construct("llvm.minimum/maximum", Harm.WRONG, "compare and select", *_intrinsic(r"(?:minimum|maximum)")),
    Construct(
        "constrained floating point",
        Harm.WRONG,
        "use convert_*_rtz builtins for conversions, emulate the rounding of arithmetic",
        *_intrinsic(r"(?:experimental\.constrained\.\w+|fptrunc\.round)"),
    ),
    Construct(
        "integer type of another width than 1, 8, 16, 32, 64, 128",
        Harm.WRONG,
        "extend to the next width",
        *_plain(r'(?<![\w%@.$"!#-])i(?!(?:1|8|16|32|64|128)\b)\d+\b(?!:)'),
    ),
    Construct(
        "llvm.memmove", Harm.WRONG, "copy by loads and stores", *_intrinsic(r"memmove(?:\.inline|\.element\w*)?")
    ),
    Construct(
        "initialiser of global+offset",
        Harm.WRONG,
        "store the address at load time",
        *_plain(
            r"^@.*= .*\b(?:global|constant)\b.*(?:\bgetelementptr\b|\b(?:add|sub) ?(?:nuw |nsw )*\(i\d+ ptrtoint)", "@"
        ),
    ),
    Construct("llvm.fptoui.sat", Harm.WRONG, "compare and select around fptoui", *_intrinsic(r"fptoui\.sat")),
    Construct(
        "call of a barrier or subgroup operation that is not convergent",
        Harm.WRONG,
        "mark the call, or the function it calls, convergent",
        _missing_convergent,
        ("barrier", "sub_group", "work_group", "__spirv_"),
    ),
    Construct(
        "getelementptr and inttoptr of the shared block in one kernel",
        Harm.WRONG,
        "address the block in one form",
        _mixed_shared,
        ("addrspace(3)",),
    ),
    # LLVM aborts.
    Construct(
        "*.with.overflow",
        Harm.ABORT,
        "compare (add, sub), test the signs (sadd, ssub), widen or take the high half (mul)",
        *_intrinsic(r"[su](?:add|sub|mul)\.with\.overflow"),
    ),
    Construct(
        "llvm.minimumnum/maximumnum", Harm.ABORT, "compare and select", *_intrinsic(r"(?:minimumnum|maximumnum)")
    ),
    Construct("llvm.canonicalize", Harm.ABORT, "multiply by 1.0", *_intrinsic("canonicalize")),
    Construct("llvm.ldexp", Harm.ABORT, "call the OpenCL builtin", *_intrinsic("ldexp")),
    Construct(
        "atomicrmw uinc_wrap/udec_wrap/usub_cond/usub_sat/nand",
        Harm.ABORT,
        "loop over cmpxchg",
        *_plain(r"\batomicrmw (?:volatile )?(?:uinc_wrap|udec_wrap|usub_cond|usub_sat|nand)\b", "atomicrmw"),
    ),
    Construct(
        "atomicrmw on floats other than fadd and fsub",
        Harm.ABORT,
        "loop over cmpxchg",
        *_plain(r"\batomicrmw (?:volatile )?f(?!add\b|sub\b)\w+", "atomicrmw"),
    ),
    Construct(
        "unsized or external shared memory",
        Harm.ABORT,
        "pass it as a kernel argument, or give it a size",
        *_plain(r"^@.*(?:\bexternal\b.*addrspace\(3\)|addrspace\(3\) global \[0 x)", "addrspace(3)"),
    ),
    Construct(
        "indirectbr",
        Harm.ABORT,
        "switch on an index",
        *_plain(r"\b(?:indirectbr|blockaddress)\b", "indirectbr", "blockaddress"),
    ),
    Construct(
        "llvm.readcyclecounter",
        Harm.ABORT,
        "refuse %clock, or count otherwise",
        *_intrinsic("(?:readcyclecounter|readsteadycounter)"),
    ),
    Construct("llvm.prefetch", Harm.ABORT, "leave the hint out", *_intrinsic("prefetch")),
    Construct("128-bit cmpxchg", Harm.ABORT, "refuse it", *_plain(r"\bcmpxchg\b.*, i128\b", "cmpxchg")),
    # Refused by the device's compiler, or crashes it.
    Construct(
        "8 or 16-bit atomic",
        Harm.REFUSED,
        "loop over a 32-bit cmpxchg of the word around it",
        *_plain(
            r"\b(?:cmpxchg\b.*?, |atomicrmw\b.*?, |load atomic (?:volatile )?|store atomic (?:volatile )?)"
            r"(?:i8|i16|half|bfloat|<2 x half>|<2 x bfloat>)\b",
            "cmpxchg",
            "atomic",
        ),
    ),
    Construct(
        "bfloat", Harm.REFUSED, "compute in float and keep i16", *_plain(r'(?<![\w%@.$"-])bfloat\b(?!:)', "bfloat")
    ),
    Construct("i128", Harm.REFUSED, "keep pairs of i64", *_plain(r'(?<![\w%@.$"!#-])i128\b(?!:)', "i128")),
    Construct(
        "fp128, x86_fp80 or ppc_fp128",
        Harm.REFUSED,
        "use double",
        *_plain(r'(?<![\w%@.$"-])(?:fp128|x86_fp80|ppc_fp128)\b', "fp"),
    ),
    Construct(
        "call through a pointer",
        Harm.REFUSED,
        "switch on the function's index",
        *_plain(r"\b(?:call|invoke)\b[^@(]*%[\w.$-]+ ?\(", "call"),
    ),
    Construct("structure or array by value", Harm.REFUSED, "pass byval of a named structure, or its fields", _by_value),
    Construct(
        "inline assembly",
        Harm.REFUSED,
        "use an instruction or a builtin",
        *_plain(r"(?:\bcall\b.*|^module )\basm\b", "asm"),
    ),
    # Invalid modules.
    Construct("zext of a trunc", Harm.INVALID, "mask in the result's width", _zext_of_trunc, (" zext ",)),
    Construct(
        "vector of another length than 2, 3, 4, 8, 16",
        Harm.INVALID,
        "split it",
        *_plain(r"<(?!(?:2|3|4|8|16) x )(?:vscale x )?\d+ x "),
    ),
    Construct(
        "vector of i1 in memory",
        Harm.INVALID,
        "extend it to bytes",
        *_plain(r"\b(?:load|store|alloca)(?: volatile)? <\d+ x i1>", " x i1>"),
    ),
)
"""Refused constructs by harm. Names are unique."""


def lint(ir: str) -> list[Finding]:
    """Every refused construct in a piece of IR for SPIR-V, by line."""
    wanted = [construct for construct in REFUSED if not construct.needles or any(n in ir for n in construct.needles)]
    text = scan(ir)
    whole = "\n".join(text.lines)
    findings = []
    for construct in wanted:
        for line in sorted(_lines(construct, text, whole)):
            findings.append(Finding(construct, text.function_at(line), line, text.lines[line - 1]))
    return sorted(findings, key=lambda finding: finding.line)


def _lines(construct: Construct, text: Text, whole: str) -> set[int]:
    if not isinstance(construct.find, re.Pattern):
        return set(construct.find(text))
    if not construct.find.search(whole):
        return set()
    return {
        number
        for number, line in enumerate(text.lines, 1)
        if (match := construct.find.search(line)) is not None
        and not (_quoted(line, match.start()) or _quoted(line, match.end() - 1))
    }


def _quoted(line: str, position: int) -> bool:
    """Whether a position lies inside a quoted name or string; quotes inside are written \\22."""
    return line.count('"', 0, position) % 2 == 1


SHOWN = 20
"""Findings told in a message."""


def check(ir: str) -> None:
    """Raises CompileError (internal) when a piece of IR for SPIR-V holds a refused construct."""
    findings = lint(ir)
    if not findings:
        return
    told = "\n".join(str(finding) for finding in findings[:SHOWN])
    more = f"\n… and {len(findings) - SHOWN} more" if len(findings) > SHOWN else ""
    raise CompileError(
        f"The lowering made IR that must not be emitted:\n{told}{more}\n{REPORT}",
        kind="internal",
        log="\n".join(str(finding) for finding in findings),
        function=findings[0].function,
    )


__all__ = ["REFUSED", "Construct", "Finding", "Function", "Harm", "check", "lint"]
