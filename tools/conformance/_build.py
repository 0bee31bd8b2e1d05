"""What the generators share: writing case files and PTX modules, and the inputs that go into them.

Shares no code with the compiler, nor with what reads the cases.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = {"8": 1, "16": 2, "32": 4, "64": 8}
ELEMENT_COLUMNS = 116

Bits = Sequence["int | str | None"]
"""Elements: bits, None (not looked at), or an address in the notation of the cases (`&2+16`)."""


def width_of(kind: str) -> int:
    """Bytes of an element type: s32 → 4, bf16 → 2."""
    return WIDTH[kind.lstrip("busf")]


def text_of(elements: Bits, width: int) -> str:
    """The notation of the cases; runs of four and more folded."""
    tokens = [
        "-" if element is None else element if isinstance(element, str) else f"{element:0{2 * width}x}"
        for element in elements
    ]
    for token in tokens:
        assert token == "-" or token.startswith("&") or len(token) == 2 * width, (token, width)
    folded: list[str] = []
    position = 0
    while position < len(tokens):
        end = position
        while end < len(tokens) and tokens[end] == tokens[position]:
            end += 1
        run = end - position
        folded.extend([f"{tokens[position]}*{run}"] if run > 3 else [tokens[position]] * run)
        position = end
    return " ".join(folded)


@dataclass
class Arg:
    """One argument of a case, before it becomes text."""

    kind: str
    type: str
    name: str = ""
    bits: Bits = ()
    expected: Bits = ()
    mask: Sequence[int] = ()
    align: int = 0
    ulp: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    any_order: bool = False
    passed: bool = True


def value(kind: str, bits: int | Bits, name: str = "", align: int = 0) -> Arg:
    """A parameter passed by value: one element, or several (an aggregate)."""
    elements: Bits = [bits] if isinstance(bits, int) else bits
    return Arg("value", kind, name, bits=elements, align=align)


def source(kind: str, bits: Bits, name: str = "") -> Arg:
    """A buffer that the kernel reads."""
    return Arg("in", kind, name, bits=bits)


def hidden(kind: str, bits: Bits, name: str = "") -> Arg:
    """A buffer that the kernel reads but no parameter points to: other arguments hold its address."""
    return Arg("in", kind, name, bits=bits, passed=False)


def target(kind: str, expected: Bits, name: str = "", **how: object) -> Arg:
    """A buffer that the kernel writes; `how`: mask, ulp, absolute, relative, any_order."""
    return Arg("out", kind, name, expected=expected, **how)  # type: ignore[arg-type]


def changed(kind: str, bits: Bits, expected: Bits, name: str = "", **how: object) -> Arg:
    """A buffer that goes in and comes out."""
    return Arg("inout", kind, name, bits=bits, expected=expected, **how)  # type: ignore[arg-type]


@dataclass
class CaseFile:
    """One file of spec/conformance being made."""

    group: str
    cases: list[dict[str, object]] = field(default_factory=list)
    modules: dict[str, Module] = field(default_factory=dict)

    def module(self, name: str, version: str = "8.0", sm: str = "sm_80", before: str = "") -> Module:
        """A PTX module of this group, made from kernels that are added to it."""
        return self.modules.setdefault(name, Module(name, version, sm, before))

    def add(
        self,
        name: str,
        ptx: str | Module,
        kernel: str,
        args: Sequence[Arg],
        *,
        section: str,
        grid: Sequence[int] = (1,),
        block: Sequence[int] = (1,),
        shared: int = 0,
        needs: Iterable[str] = (),
        tier: str = "smoke",
        note: str = "",
    ) -> None:
        """One case. `ptx` is a module of this generator or the name of a hand-written file in spec/conformance/ptx."""
        self.cases.append(
            {
                "id": f"{self.group}.{name}",
                "tier": tier,
                "needs": list(needs),
                "section": section,
                "note": note,
                "ptx": f"ptx/{ptx.name if isinstance(ptx, Module) else ptx}.ptx",
                "kernel": kernel,
                "grid": list(grid),
                "block": list(block),
                "shared": shared,
                "args": list(args),
            }
        )

    def render(self, generator: str) -> dict[str, str]:
        """File names below spec/conformance to their text."""
        files = {f"{self.group}.toml": self._toml(generator)}
        for module in self.modules.values():
            files[f"ptx/{module.name}.ptx"] = module.text(generator)
        return files

    def _toml(self, generator: str) -> str:
        texts = Counter(text for case in self.cases for arg in _args(case) for text in _texts(arg) if len(text) > 80)
        names = {text: f"d{number}" for number, text in enumerate(t for t, times in texts.items() if times > 1)}
        lines = [
            f"# Made by tools/conformance/{generator}; edit that, not this.",
            "format = 1",
            f'group = "{self.group}"',
        ]
        if names:
            lines += ["", "[data]"]
            lines += [f"{name} = {_multiline(text)}" for text, name in names.items()]
        for case in self.cases:
            lines += ["", "[[case]]", f"id = {_string(case['id'])}"]
            if case["tier"] != "smoke":
                lines.append(f"tier = {_string(case['tier'])}")
            if case["needs"]:
                lines.append(f"needs = {json.dumps(case['needs'])}")
            lines.append(f"section = {_string(case['section'])}")
            if case["note"]:
                lines.append(f"note = {_string(case['note'])}")
            lines += [f"ptx = {_string(case['ptx'])}", f"kernel = {_string(case['kernel'])}"]
            lines += [f"grid = {json.dumps(case['grid'])}", f"block = {json.dumps(case['block'])}"]
            if case["shared"]:
                lines.append(f"shared = {case['shared']}")
            for arg in _args(case):
                lines += _argument_lines(arg, names)
        return "\n".join(lines) + "\n"


def _args(case: dict[str, object]) -> list[Arg]:
    args = case["args"]
    assert isinstance(args, list)
    return args


def _texts(arg: Arg) -> list[str]:
    width = width_of(arg.type)
    return [text_of(elements, width) for elements in (arg.bits, arg.expected, arg.mask) if elements]


def _argument_lines(arg: Arg, names: dict[str, str]) -> list[str]:
    width = width_of(arg.type)
    lines = ["[[case.argument]]", f"kind = {_string(arg.kind)}", f"type = {_string(arg.type)}"]
    if arg.name:
        lines.append(f"name = {_string(arg.name)}")
    for key, elements in (("bits", arg.bits), ("expected", arg.expected), ("mask", arg.mask)):
        if elements:
            text = text_of(elements, width)
            lines.append(f"{key} = {_string('$' + names[text]) if text in names else _multiline(text)}")
    if not arg.passed:
        lines.append("passed = false")
    if arg.align:
        lines.append(f"align = {arg.align}")
    if arg.ulp:
        lines.append(f"ulp = {arg.ulp}")
    if arg.absolute:
        lines.append(f"absolute = {arg.absolute!r}")
    if arg.relative:
        lines.append(f"relative = {arg.relative!r}")
    if arg.any_order:
        lines.append('order = "any"')
    return lines


def _string(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def _multiline(text: str) -> str:
    if len(text) < ELEMENT_COLUMNS - 20:
        return _string(text)
    lines, line = [], ""
    for token in text.split():
        if line and len(line) + 1 + len(token) > ELEMENT_COLUMNS:
            lines.append(line)
            line = token
        else:
            line = f"{line} {token}" if line else token
    lines.append(line)
    return '"""\n' + "\n".join(lines) + '"""'


@dataclass
class Module:
    """A PTX module made of kernels. `before` holds module-scope directives."""

    name: str
    version: str = "8.0"
    sm: str = "sm_80"
    before: str = ""
    kernels: list[str] = field(default_factory=list)

    def text(self, generator: str) -> str:
        head = f"// Made by tools/conformance/{generator}; edit that, not this.\n"
        head += f".version {self.version}\n.target {self.sm}\n.address_size 64\n"
        return "\n".join([head, *([self.before] if self.before else []), *self.kernels])

    def elementwise(
        self,
        kernel: str,
        inputs: Sequence[tuple[str, str]],
        outputs: Sequence[tuple[str, str]],
        body: str,
        registers: str = "",
    ) -> str:
        """A kernel that applies `body` to one element of each buffer: inputs %a, %b, …, outputs %d, %e, ….

        `inputs` and `outputs` are pairs of register type and the type of the load or store (`("s32", "u32")`). The
        parameters are the buffers in order, then the count. Returns the kernel's name.
        """
        names = [f"%{letter}" for letter in "abcghk"[: len(inputs)]]
        results = [f"%{letter}" for letter in "defmnoqstv"[: len(outputs)]]
        buffers = len(inputs) + len(outputs)
        lines = [f".visible .entry {kernel}("]
        lines += [f"    .param .u64 {kernel}_param_{number}," for number in range(buffers)]
        lines += [f"    .param .u32 {kernel}_param_{buffers}", ")", "{"]
        lines += ["    .reg .pred %p<8>;", "    .reg .b32 %r<8>;", f"    .reg .b64 %rd<{2 * buffers + 2}>;"]
        lines += [f"    .reg .{kind} {name};" for name, (kind, _) in zip(names, inputs, strict=True)]
        lines += [f"    .reg .{kind} {name};" for name, (kind, _) in zip(results, outputs, strict=True)]
        lines += [f"    {line.strip()}" for line in registers.strip().splitlines()]
        lines += [
            "",
            f"    ld.param.u32 %r1, [{kernel}_param_{buffers}];",
            "    mov.u32 %r2, %ctaid.x;",
            "    mov.u32 %r3, %ntid.x;",
            "    mov.u32 %r4, %tid.x;",
            "    mad.lo.s32 %r5, %r2, %r3, %r4;",
            "    setp.ge.u32 %p1, %r5, %r1;",
            "    @%p1 bra $L__done;",
        ]
        for number, (name, (_, kind)) in enumerate(zip([*names, *results], [*inputs, *outputs], strict=True)):
            pointer, address = f"%rd{2 * number}", f"%rd{2 * number + 1}"
            lines += [
                f"    ld.param.u64 {pointer}, [{kernel}_param_{number}];",
                f"    cvta.to.global.u64 {pointer}, {pointer};",
                f"    mad.wide.u32 {address}, %r5, {width_of(kind)}, {pointer};",
            ]
            if number < len(inputs):
                lines.append(f"    ld.global.{kind} {name}, [{address}];")
        lines += [f"    {line.strip()}" for line in body.strip().splitlines()]
        lines += [
            f"    st.global.{kind} [%rd{2 * (len(inputs) + number) + 1}], {name};"
            for number, (name, (_, kind)) in enumerate(zip(results, outputs, strict=True))
        ]
        lines += ["$L__done:", "    ret;", "}", ""]
        self.kernels.append("\n".join(lines))
        return kernel


def elementwise_case(
    file: CaseFile,
    name: str,
    module: Module,
    kernel: str,
    inputs: Sequence[tuple[str, Bits]],
    outputs: Sequence[Arg],
    *,
    section: str,
    needs: Iterable[str] = (),
    tier: str = "smoke",
    note: str = "",
    block: int = 64,
) -> None:
    """The case of an elementwise kernel: as many threads as elements, the last block partly idle."""
    count = len(inputs[0][1])
    args = [source(kind, bits, letter) for letter, (kind, bits) in zip("abcghk", inputs, strict=False)]
    for arg, letter in zip(outputs, "defmnoqstv", strict=False):
        arg.name = arg.name or letter
        assert len(arg.expected) == count
    args += outputs
    args.append(value("u32", count, "count"))
    file.add(
        name, module, kernel, args, section=section, needs=needs, tier=tier, note=note,
        grid=((count + block - 1) // block,), block=(block,),
    )  # fmt: skip


def signed(x: int, bits: int) -> int:
    """The two's complement number that the low `bits` of `x` spell."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def integer_edges(bits: int) -> list[int]:
    """Where integer operations break: ends, sign changes, ones and zeros in patterns."""
    top = 1 << (bits - 1)
    full = (1 << bits) - 1
    return [
        0, 1, 2, 3, 7, bits - 1, bits, bits + 1, top - 1, top, top + 1, full - 1, full,
        full // 3, full // 5 * 4 + 1, (1 << (bits // 2)) - 1, 1 << (bits // 2), (1 << (bits // 2)) + 1,
    ]  # fmt: skip


def pairs(bits: int, seed: str, extra: int = 40) -> tuple[list[int], list[int]]:
    """Two operands: every pair of a handful of edges, then random ones of varied magnitude."""
    edges = integer_edges(bits)
    few = [edges[i] for i in (0, 1, 3, 8, 9, 11, 12, 14)]
    left = [a for a in few for _ in few]
    right = [b for _ in few for b in few]
    rng = random.Random(seed)
    for _ in range(extra):
        left.append(rng.choice([rng.choice(edges), varied(rng, bits)]))
        right.append(rng.choice([rng.choice(edges), varied(rng, bits)]))
    return left, right


def varied(rng: random.Random, bits: int) -> int:
    """A random number whose magnitude is random too, of either sign."""
    magnitude = rng.getrandbits(rng.randint(1, bits))
    return (magnitude if rng.random() < 0.7 else -magnitude) & ((1 << bits) - 1)


def column(function: Callable[..., int | None], *columns: Sequence[int]) -> list[int | None]:
    """`function` over the rows."""
    return [function(*row) for row in zip(*columns, strict=True)]


def folder() -> Path:
    """spec/conformance of the work tree."""
    return Path(__file__).resolve().parents[2] / "spec" / "conformance"
