"""The worker process: takes requests off a socket, compiles, answers. Its death is one compile's error.

Started by `zluda.compiler.supervisor`. Importing this module loads no compiler: that happens with the first request.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import resource
import signal
import socket
import traceback
from typing import Any

from zluda.backend.seam import BackendError, BuildError
from zluda.compiler.channel import Channel
from zluda.compiler.errors import REPORT, CompileError
from zluda.compiler.kernel import CompiledImage
from zluda.compiler.wire import pack, request_from_wire, unpack

_PR_SET_PDEATHSIG = 1


class _Records(logging.Handler):
    """Keeps what a job logs, to be logged again by the parent."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.name, record.levelno, record.getMessage()))

    def take(self) -> list[tuple[str, int, str]]:
        lines, self.lines = self.lines, []
        return lines


def _portable(channel: Channel, header: dict[str, Any], blob: bytes) -> CompiledImage:
    from zluda.compiler import emit

    # It comes up while the lowering is imported.
    emit.start()
    from zluda.compiler.portable import compile_portable

    image = compile_portable(request_from_wire(header["request"], blob))
    if header["request"]["backend"]:
        # The parent keeps it: should the vendor's compiler die or take too long, this half need not be done again.
        channel.send({"type": "portable"}, pack(image))
    return image


def _finalize(header: dict[str, Any], portable: CompiledImage) -> CompiledImage:
    """The device's native binary where the vendor hands one back, else the portable image itself."""
    from zluda.backend.registry import load_backends

    name = header["request"]["backend"]
    backends = load_backends()
    if name not in backends:
        known = ", ".join(sorted(backends)) or "none"
        raise CompileError(
            f"The backend {name!r} is not installed where kernels are compiled; installed: {known}", kind="vendor"
        )
    try:
        native = backends[name].finalize(
            header["request"]["device_index"], portable.image, tuple(header["request"]["options"])
        )
    except BuildError as error:
        raise CompileError(
            f"The compiler of {name} refused the kernel: {error}", kind="vendor", log=error.log
        ) from error
    except BackendError as error:
        raise CompileError(f"{name} cannot build the kernel: {error}", kind="vendor") from error
    if native is None:
        return portable
    return CompiledImage(image=native, kernels=portable.kernels, log=portable.log)


def _job(channel: Channel, header: dict[str, Any], blob: bytes) -> CompiledImage:
    match header["op"]:
        case "compile":
            image = _portable(channel, header, blob)
            return _finalize(header, image) if header["request"]["backend"] else image
        case "finalize":
            return _finalize(header, unpack(blob))
        case other:
            raise ValueError(f"unknown operation {other!r}")


def _serve(channel: Channel, records: _Records) -> None:
    while True:
        try:
            header, blob = channel.receive()
        except EOFError:
            return
        logging.getLogger("zluda").setLevel(header["log_level"])
        try:
            image = _job(channel, header, blob)
        except CompileError as error:
            channel.send({"type": "error", "error": error.to_wire(), "records": records.take()})
        except Exception as error:  # noqa: BLE001 - any failure is that compile's answer
            failed = CompileError(
                f"The compiler failed: {type(error).__name__}: {error}\n{REPORT}", log=traceback.format_exc()
            )
            channel.send({"type": "error", "error": failed.to_wire(), "records": records.take()})
        else:
            channel.send({"type": "done", "records": records.take()}, pack(image))


def _settle(parent: int) -> None:
    """Makes this process die with its parent, quietly, and by nobody else's signals."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    faulthandler.enable()
    # It fires when the thread that started this process ends: the supervisor's threads live as long as their workers.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(0)


def main(descriptor: int, parent: int) -> None:
    """Serve the socket `descriptor` until it closes or the process `parent` ends."""
    _settle(parent)
    records = _Records()
    logging.getLogger("zluda").addHandler(records)
    channel = Channel(socket.socket(fileno=descriptor))
    channel.send({"type": "ready"})
    _serve(channel, records)
    # Vendor runtimes are known to crash in their exit handlers.
    os._exit(0)
