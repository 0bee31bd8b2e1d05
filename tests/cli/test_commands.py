"""The commands, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def zluda(*arguments: str, check: int | None = 0, stdin: str | None = None, **variables: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "zluda", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **variables},
        timeout=120,
    )
    assert check is None or done.returncode == check, done.stderr
    return done.stdout, done.stderr


def test_devices_as_json_shows_the_device_and_the_stacks_passed_over() -> None:
    report = json.loads(zluda("devices", "--json")[0])
    first = report["devices"][0]
    assert first["ordinal"] == 0 and first["state"] == "chosen"
    assert {stack["backend"] for stack in report["stacks"]} >= {"opencl", "rocm", "level_zero"}
    for entry in report["passed_over"]:
        assert entry["what"] and entry["why"]


def test_devices_as_table_names_the_same_device() -> None:
    name = json.loads(zluda("devices", "--json")[0])["devices"][0]["name"]
    table = zluda("devices", COLUMNS="250")[0]
    assert name in table and "chosen, CUDA device 0" in table and "rocm" in table


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="this machine has an AMD GPU")
def test_rocm_without_rocm_is_an_error_with_its_reason_and_no_other_device() -> None:
    out, err = zluda("devices", check=1, ZLUDA_BACKEND="rocm")
    assert "rocm has no usable device" in err and "ROCm" in err and not out


def test_unknown_backend_is_named_with_what_is_installed() -> None:
    _, err = zluda("devices", check=1, ZLUDA_BACKEND="cuda")
    assert "'cuda'" in err and "opencl" in err


def test_env_prints_lines_a_shell_takes() -> None:
    wanted = json.loads(zluda("env", "--json", LD_LIBRARY_PATH="/somewhere")[0])
    assert wanted["LD_LIBRARY_PATH"].endswith(":/somewhere") and wanted["ZLUDA_LD_LIBRARY_PATH"] == "/somewhere"
    assert (Path(wanted["LD_LIBRARY_PATH"].split(":")[0]) / "libcuda.so.1").is_file()
    script = zluda("env", LD_LIBRARY_PATH="/somewhere")[0] + "printenv LD_LIBRARY_PATH ZLUDA_PYTHON"
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert shown == [wanted["LD_LIBRARY_PATH"], wanted["ZLUDA_PYTHON"]]


def test_env_twice_adds_nothing() -> None:
    once = json.loads(zluda("env", "--json", LD_LIBRARY_PATH="")[0])
    assert json.loads(zluda("env", "--json", **once)[0]) == once


@pytest.mark.parametrize(("command", "status"), [(["false"], 1), (["sh", "-c", "exit 7"], 7), (["true"], 0)])
def test_run_gives_the_programs_own_status(command: list[str], status: int) -> None:
    zluda("run", "--", *command, check=status)


def test_run_hands_over_arguments_streams_and_environment() -> None:
    out, _ = zluda("run", "--backend", "opencl", "--", "sh", "-c", 'cat; echo "$0 $ZLUDA_BACKEND"', "-x", stdin="in ")
    assert out == "in -x opencl\n"


@pytest.mark.parametrize("options", [[], ["--backend", "opencl"]])
def test_run_leaves_signals_as_they_are(options: list[str]) -> None:
    """A program started from a shell ignores no signal."""
    out, _ = zluda("run", *options, "--", "grep", "SigIgn", "/proc/self/status")
    ignored = int(out.split()[1], 16)
    own = int(re.search(r"SigIgn:\s+(\w+)", Path("/proc/self/status").read_text()).group(1), 16)
    pipe = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert not ignored & pipe and ignored & ~pipe == own & ~pipe


@pytest.mark.parametrize("options", [[], ["--backend", "opencl"]])
def test_run_of_what_is_not_there_or_no_program(options: list[str], tmp_path: Path) -> None:
    assert "no such program" in zluda("run", *options, "--", "no-such-program", check=127)[1]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert "not executable" in zluda("run", *options, "--", str(plain), check=126)[1]


def test_run_without_a_program() -> None:
    assert "Missing argument" in zluda("run", "--", check=2)[1]
    assert "Missing argument" in zluda("run", check=2)[1]


def test_compile_writes_spirv(tmp_path: Path) -> None:
    output = tmp_path / "scale.spv"
    zluda("compile", "examples/scale.ptx", "--target", "spirv", "-o", str(output))
    assert output.read_bytes()[:4] == (0x07230203).to_bytes(4, "little")  # SPIR-V specification, 2.3 "Magic Number"


def test_compile_shows_the_steps() -> None:
    assert re.search(r"define .*@scale\(", zluda("compile", "examples/scale.ptx", "--emit", "llvm")[0])
    assert re.search(r'OpEntryPoint Kernel %\S+ "scale"', zluda("compile", "examples/scale.ptx", "--emit", "asm")[0])


def test_compile_reads_standard_input_and_picks_an_entry() -> None:
    text = (ROOT / "examples/scale.ptx").read_text()
    both = text + text[text.index(".visible") :].replace("scale", "other")
    asm = zluda("compile", "-", "--emit", "asm", "--entry", "other", stdin=both)[0]
    assert '"other"' in asm and '"scale"' not in asm


def test_compile_says_where_the_text_is_wrong() -> None:
    text = (ROOT / "examples/scale.ptx").read_text().replace("mul.rn.f32 %f3, %f2, %f1;", "mul.rn.f32 %f3 %f2, %f1;")
    line = 1 + text[: text.index("mul.rn.f32")].count("\n")
    _, err = zluda("compile", "-", "--emit", "asm", check=1, stdin=text)
    assert f"<stdin>:{line}:" in err and "mul.rn.f32 %f3 %f2, %f1;" in err and "^" in err


def test_compile_names_an_instruction_that_is_not_lowered() -> None:
    text = (ROOT / "examples/scale.ptx").read_text().replace("mul.rn.f32 %f3, %f2, %f1;", "wgmma.fence.sync.aligned;")
    line = 1 + text[: text.index("wgmma")].count("\n")
    _, err = zluda("compile", "-", "--emit", "asm", check=1, stdin=text)
    assert f"<stdin>:{line}:2" in err and "scale" in err and "wgmma.fence.sync.aligned" in err


def test_compile_of_a_missing_file() -> None:
    assert "No such file" in zluda("compile", "nowhere.ptx", "-o", "/dev/null", check=2)[1]


def test_compile_to_what_cannot_be_written(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere" / "k.spv"):
        out, err = zluda("compile", "examples/scale.ptx", "-o", str(place), check=2)
        assert err.startswith(f"zluda compile: {place}: ") and err.count("\n") == 1 and not out


def test_compile_to_standard_output(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zluda", "compile", ROOT / "examples/scale.ptx", "-o", "-"],
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout[:4] == (0x07230203).to_bytes(4, "little") and not list(tmp_path.iterdir())


def test_the_devices_table_shows_remedies_whole() -> None:
    report = json.loads(zluda("devices", "--json")[0])
    table = re.sub(r"[\s│]+", "", zluda("devices", COLUMNS="400")[0])
    for entry in report["passed_over"]:
        assert re.sub(r"\s+", "", entry["remedy"]) in table


def test_the_devices_table_takes_brackets_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    from zluda.backend.info import Unusable
    from zluda.backend.selection import Selection
    from zluda.cli.devices import _print

    entry = Unusable(what="ROCm", why="no hip-python", remedy="pip install 'zluda-rocm[rocm]'")
    _print(Selection(chosen=(), usable=(), passed_over=(entry,)))
    assert "zluda-rocm[rocm]" in re.sub(r"[\s│]+", "", capsys.readouterr().out)


def test_run_of_a_file_in_this_folder_says_how(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "zluda", "run", "--", "program"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 127 and "not on PATH; did you mean ./program?" in done.stderr
    program.chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-m", "zluda", "run", "--", "program"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 127 and "not on PATH" in done.stderr and "not executable" in done.stderr


def test_version_and_short_help() -> None:
    import zluda as package

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package.__version__ == project["version"]
    assert zluda("--version")[0] == f"zluda {package.__version__}\n"
    assert zluda("-h")[0] == zluda("--help")[0] and "..." not in zluda("-h")[0].split("Commands:")[1]
    for command in ("run", "devices", "compile", "env"):
        assert zluda(command, "-h")[0] == zluda(command, "--help")[0]


def test_importing_the_package_reads_no_metadata() -> None:
    code = "import sys, zluda; assert 'importlib.metadata' not in sys.modules"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_run_after_two_dashes_loads_no_parser(tmp_path: Path) -> None:
    """`zluda run -- PROGRAM` is at the start of every program: what it imports is waited for."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "zluda", "run", "--", "true"], capture_output=True, text=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0 and "zluda.cli.launch" in loaded and not loaded & {"typer", "rich", "pydantic"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["devices"],
        ["devices", "--json"],
        ["env"],
        ["env", "--json"],
        ["--version"],
        ["--help"],
        ["compile", "examples/scale.ptx"],
        ["compile", "examples/scale.ptx", "--emit", "llvm"],
    ],
)
def test_a_full_device_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zluda", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
    assert done.returncode == 2 and done.stderr == "zluda: cannot write: No space left on device\n"


@pytest.mark.parametrize("arguments", [["devices"], ["env"], ["compile", "examples/scale.ptx"]])
def test_a_reader_that_has_left_is_no_news(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "zluda", *arguments], stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    os.close(write)
    assert done.returncode == 1 and not done.stderr


def test_compile_of_what_is_no_text() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zluda", "compile", "-"],
        input=b"\xff\xfe",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
    )
    assert done.returncode == 1 and done.stderr.startswith(b"zluda compile: <stdin>:1:1: ")


def test_an_image_is_not_written_to_a_terminal() -> None:
    main, terminal = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "zluda", "compile", "examples/scale.ptx"],
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    os.close(terminal)
    os.close(main)
    assert done.returncode == 2 and "-o" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_compile_with_a_closed_stream(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m zluda compile - {closed}', sys.executable], input="", capture_output=True, text=True
    )
    assert done.returncode == 2 and "is closed" in done.stderr and done.stderr.count("\n") == 1


def test_spec_driver_lists_every_entry_point() -> None:
    from zluda.spec.driver_api import driver_api

    listed = json.loads(zluda("spec", "driver", "--json")[0])
    by_symbol = {row["symbol"]: row for row in listed["functions"]}
    assert set(by_symbol) == {f.symbol for f in driver_api().function}
    assert sum(listed["symbols"].values()) == len(by_symbol)
    assert sum(listed["names"].values()) == len({row["name"] for row in listed["functions"]})
    assert by_symbol["cuMemAlloc_v2"]["support"] == "full" and by_symbol["cuMemAlloc_v2"]["since"] == 3020
    assert all(row["note"] for row in listed["functions"] if row["support"] == "partial")
    some = json.loads(zluda("spec", "driver", "--json", "--support", "partial")[0])["functions"]
    assert some == [row for row in listed["functions"] if row["support"] == "partial"]
    table = zluda("spec", "driver", "--support", "partial")[0]
    assert all(row["symbol"][:20] in table for row in some)
    assert "is none of full, partial, none" in " ".join(
        zluda("spec", "driver", "--support", "most", check=2)[1].split()
    )
