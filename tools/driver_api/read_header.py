"""Read the driver API out of NVIDIA's cuda.h, and write what spec/driver_api does not say itself.

    pip install pycparser
    python tools/driver_api/read_header.py             write header.toml and unbuilt.toml
    python tools/driver_api/read_header.py --check     only compare; status 1 if they or the other files differ

header.toml gets the types, enumerations and numbers that types.toml leaves out, unbuilt.toml the entry points that no
other file has. Files that name another `header` are left alone. What the others say of types and versions is checked
against the header. It comes from the wheel nvidia-cuda-runtime, fetched with pip, unless --include names a folder that
has cuda.h and cudaTypedefs.h.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_generator, c_parser

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"
FOLDER = SPEC / "driver_api"
WHEEL = "nvidia-cuda-runtime==13.*"

_STDINT = {8: "char", 16: "short", 32: "int", 64: "long"}
SYSTEM = {
    "stdlib.h": "typedef unsigned long size_t;\n",
    "stdint.h": "".join(
        f"typedef signed {kind} int{bits}_t;\ntypedef unsigned {kind} uint{bits}_t;\n" for bits, kind in _STDINT.items()
    )
    + "typedef unsigned long uintptr_t;\n",
}
"""What cuda.h includes, as far as it uses that."""

ELSEWHERE = {
    "CUresult": "errors.toml",
    "CUdevice_attribute": "attributes.toml",
    "CUfunction_attribute": "attributes.toml",
}
"""Enumerations with files of their own."""

NO_NUMBER = {"CUDA_VERSION", "CUDA_CB", "CU_UUID_HAS_BEEN_DEFINED"}


@dataclass
class Function:
    """One exported symbol."""

    name: str
    symbol: str
    since: int
    parameters: list[tuple[str, str]]
    """(type, name)"""
    per_thread: str = ""


@dataclass
class Header:
    """What cuda.h says."""

    version: int = 0
    types: list[tuple[str, str]] = field(default_factory=list)
    """(name, declaration), each behind what it needs."""
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    """The symbol that a C program gets by a name, where it is another."""


def preprocess(include: Path, *options: str) -> str:
    """The text of cuda.h."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SYSTEM.items():
            (Path(folder) / name).write_text(text)
        command = ["gcc", "-std=c11", "-E", "-P", "-nostdinc", "-D__attribute__(x)="]
        done = subprocess.run(
            [*command, *options, f"-I{folder}", str(include / "cuda.h")], capture_output=True, text=True, check=True
        )
    return done.stdout


def read(include: Path) -> Header:
    """Everything of the header."""
    header = Header()
    every_symbol = "-D__CUDA_API_VERSION_INTERNAL"
    tree = c_parser.CParser().parse(preprocess(include, every_symbol))
    own = {name for text in SYSTEM.values() for name in re.findall(r"(\w+);", text)}
    prototypes: dict[str, list[tuple[str, str]]] = {}
    for node in tree.ext:
        if isinstance(node, c_ast.Typedef) and node.name not in own:
            enum = node.type.type if isinstance(node.type, c_ast.TypeDecl) else None
            if isinstance(enum, c_ast.Enum):
                header.enums[node.name] = _values(enum, header.enums)
            else:
                header.types.append((node.name, _text(node).removeprefix("typedef ")))
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            prototypes[node.name] = list(_parameters(node.type))
        elif isinstance(node, c_ast.Decl):
            header.types.append(("", _text(node)))
    header.functions = _functions(prototypes, (include / "cudaTypedefs.h").read_text())
    for name, value in re.findall(r"^#define (CU\w+) (\S.*)$", preprocess(include, every_symbol, "-dM"), re.MULTILINE):
        if name == "CUDA_VERSION":
            header.version = int(value)
        elif re.match(r"CU(DA)?_", name) and name not in NO_NUMBER:
            header.constants[name] = value
    renamed = re.findall(
        r"^#define (cu\w+) (?:__CUDA_API_PT[DS][SZ]\()?(cu\w+)\)?$", preprocess(include, "-dM"), re.MULTILINE
    )
    header.plain = {name: symbol for name, symbol in sorted(renamed) if symbol in prototypes and symbol != name}
    return header


def _text(node: c_ast.Node) -> str:
    """C on one line, written one way."""
    text = " ".join(c_generator.CGenerator().visit(node).split())
    return re.sub(r"(\*+) (?=\w)", r"\1", text)


def _parameters(function: c_ast.FuncDecl) -> Iterator[tuple[str, str]]:
    for parameter in function.args.params if function.args else ():
        if isinstance(parameter, c_ast.Decl):
            name, parameter.name = parameter.name, None
            kind = parameter.type
            while not isinstance(kind, c_ast.TypeDecl):
                kind = kind.type
            kind.declname = None
            yield _text(parameter), name


def _values(enum: c_ast.Enum, known: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    names = {name: value for values in known.values() for name, value in values.items()}
    found: dict[str, int] = {}
    following = 0
    for item in enum.values.enumerators:
        following = _number(item.value, {**names, **found}) if item.value is not None else following
        found[item.name] = following
        following += 1
    return found


def _number(node: c_ast.Node, names: Mapping[str, int]) -> int:
    """The value of a constant expression."""
    text = c_generator.CGenerator().visit(node)
    expression = re.sub(r"(?<=[0-9a-fA-F])[uUlL]+\b", "", text)
    if not re.fullmatch(r"[\w\s()|+<>&~-]*", expression):
        raise ValueError(f"not a constant expression: {text}")
    return int(eval(expression, {"__builtins__": {}}, dict(names)))


def _functions(prototypes: Mapping[str, list[tuple[str, str]]], typedefs: str) -> list[Function]:
    """The n-th form of a name has the n-th of its versions: cudaTypedefs.h tells versions, cuda.h symbols."""
    versions: dict[str, set[int]] = {}
    for name, version in re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)", typedefs):
        versions.setdefault(name, set()).add(int(version))
    forms: dict[str, list[tuple[int, str]]] = {}
    for symbol in prototypes:
        if not re.search(r"_pt[sd][sz]$", symbol):
            name, _, form = re.fullmatch(r"(\w+?)(_v(\d+))?", symbol).groups()  # type: ignore[union-attr]
            forms.setdefault(name, []).append((int(form or 1), symbol))
    found = []
    for name in forms:
        if len(forms[name]) != len(versions.get(name, ())):
            raise ValueError(f"{name}: {len(forms[name])} symbols, but versions {sorted(versions.get(name, ()))}")
        for (_, symbol), since in zip(sorted(forms[name]), sorted(versions[name]), strict=True):
            variants = [v for v in ("ptsz", "ptds") if f"{symbol}_{v}" in prototypes]
            found.append(Function(name, symbol, since, prototypes[symbol], variants[0] if variants else ""))
    return found


def declared() -> tuple[dict[str, Any], dict[str, tuple[str, dict[str, Any]]]]:
    """What is written by hand: types.toml, and entry points by symbol with their files."""
    types = tomllib.loads((FOLDER / "types.toml").read_text())
    functions = {}
    for path in sorted(FOLDER.glob("*.toml")):
        if path.name not in ("types.toml", "header.toml", "unbuilt.toml"):
            content = tomllib.loads(path.read_text())
            for function in () if "header" in content else content["function"]:  # of another header than cuda.h
                functions[function.get("symbol", function["name"])] = (path.name, function)
    return types, functions


def differences(header: Header) -> Iterator[str]:
    """Where hand-written files say something else than the header."""
    types, functions = declared()
    if types["version"] != header.version:
        yield f"types.toml: version is {types['version']}, CUDA_VERSION {header.version}"
    for enum in types["enum"]:
        has, should = dict(enum["values"]), header.enums.get(enum["name"], {})
        if has != should:
            wrong = sorted(set(has.items()) ^ set(should.items()))
            yield f"types.toml: {enum['name']} differs in {wrong}"
    for name, own in numbers().items():
        should = {k: v for k, v in header.enums[name].items() if not re.search(r"_(MAX|RESERVED\d*|DEPRECATED\w*)$", k)}
        for value in sorted(set(own.items()) ^ set(should.items())):
            yield f"{ELSEWHERE[name]}: {name}: {value} is {'not in cuda.h' if value in own.items() else 'missing'}"
    known = {f.symbol: f for f in header.functions}
    for symbol, (file, function) in functions.items():
        if symbol not in known:
            yield f"{file}: {symbol} is not in cuda.h"
            continue
        form = known[symbol]
        says = (function["name"], function["since"], function.get("per_thread", ""))
        if says != (form.name, form.since, form.per_thread):
            yield f"{file}: {symbol} is {(form.name, form.since, form.per_thread)}, not {says}"
        parameters = [(p["type"], p["name"]) for p in function["parameters"]]
        if parameters != form.parameters:
            yield f"{file}: {symbol} has {form.parameters}, not {parameters}"


def numbers() -> dict[str, dict[str, int]]:
    """The enumerations of ELSEWHERE as spec/ has them."""
    errors = tomllib.loads((SPEC / "errors.toml").read_text())
    attributes = tomllib.loads((SPEC / "attributes.toml").read_text())
    found = {"CUresult": {name: entry["code"] for name, entry in errors.items()}}
    for enum, table in (("CUdevice_attribute", "device"), ("CUfunction_attribute", "function")):
        rows = attributes[table].items()
        found[enum] = {n: a["number"] for name, a in rows for n in (name, *a.get("aliases", ()))}
    return found


def header_file(header: Header) -> str:
    """header.toml."""
    types, _ = declared()
    enums, constants = ({entry["name"] for entry in types[kind]} for kind in ("enum", "constant"))
    lines = [
        f"# Types and numbers of cuda.h, CUDA {_dotted(header.version)}.",
        "# Made by tools/driver_api/read_header.py; do not edit.",
        "",
    ]
    for name, declaration in header.types:
        lines += ["[[type]]", f"name = {_quoted(name)}", f"declaration = {_quoted(declaration)}", ""]
    for name, values in header.enums.items():
        if name not in enums and name not in ELSEWHERE:
            rows = [f"  [{_quoted(key)}, {value}]," for key, value in values.items()]
            lines += ["[[enum]]", f"name = {_quoted(name)}", "values = [", *rows, "]", ""]
    for name, value in sorted(header.constants.items()):
        if name not in constants:
            lines += ["[[constant]]", f"name = {_quoted(name)}", f"value = {_quoted(value)}", ""]
    lines += ["[plain]", "# What a name stands for in C, where it is another symbol."]
    lines += [f"{name} = {_quoted(symbol)}" for name, symbol in header.plain.items()]
    return "\n".join([*lines, ""])


def unbuilt_file(header: Header) -> str:
    """unbuilt.toml."""
    _, functions = declared()
    lines = [
        "# Entry points that are not built. Made by tools/driver_api/read_header.py; do not edit: whoever",
        "# builds one moves it to the file of its area and runs the tool again.",
        "",
    ]
    for f in sorted(header.functions, key=lambda f: (f.name, f.since)):
        if f.symbol not in functions:
            lines += ["[[function]]", f"name = {_quoted(f.name)}"]
            lines += [f"symbol = {_quoted(f.symbol)}"] * (f.symbol != f.name)
            lines += [f"since = {f.since}"]
            lines += [f"per_thread = {_quoted(f.per_thread)}"] * bool(f.per_thread)
            lines += ['answer = "local"', 'context = "init"', 'support = "none"']
            rows = [f"  {{ name = {_quoted(name)}, type = {_quoted(kind)} }}," for kind, name in f.parameters]
            lines += ["parameters = [", *rows, "]", ""] if rows else ["parameters = []", ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def fetch(folder: Path) -> Path:
    """The include folder of the wheel."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
        "-d",
        folder,
        WHEEL,
    ]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return next(folder.rglob("cuda.h")).parent


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", type=Path, help="folder of cuda.h and cudaTypedefs.h")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if anything would change")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        header = read(options.include or fetch(Path(folder)))
    wrong = list(differences(header))
    for path, text in ((FOLDER / "header.toml", header_file(header)), (FOLDER / "unbuilt.toml", unbuilt_file(header))):
        if path.is_file() and path.read_text() == text:
            continue
        if options.check:
            wrong.append(f"{path.name} is not what cuda.h says")
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    print("\n".join(wrong) or f"spec/driver_api agrees with cuda.h of CUDA {_dotted(header.version)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
