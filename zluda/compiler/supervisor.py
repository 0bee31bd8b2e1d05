"""A compile worker as the service sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage
from zluda.compiler.process import Process
from zluda.compiler.wire import unpack

_log = logging.getLogger("zluda.compiler")

_SETUP = ""
"""Python statements, `;` behind each, that a worker runs first; tests plant a stand-in compiler with them."""


class Worker(Process):
    """A worker process. To be used by the one thread that made it, which must outlive it; `kill` may come from any.

    Raises CompileError (died) when the process does not come up.
    """

    def __init__(self) -> None:
        super().__init__("compile worker", "zluda.compiler.worker", setup=_SETUP, new_session=True)
        self.wait_until_ready()

    def run(
        self,
        header: dict[str, Any],
        blob: bytes,
        *,
        what: str,
        since: float,
        deadline: float,
        on_portable: Callable[[CompiledImage], float],
    ) -> CompiledImage:
        """One job. `deadline` counts from `since`, both of time.monotonic().

        `on_portable` gets the portable image when that half is done, and gives the deadline of the rest.
        Raises CompileError; after the kinds `died` and `timeout` the process may be gone.
        """
        self.send(what, {**header, "log_level": _log.getEffectiveLevel()}, blob, since=since, deadline=deadline)
        while True:
            answer, data = self.receive(what, since=since, deadline=deadline)
            for name, level, message in answer.get("records", ()):
                logging.getLogger(name).log(level, "%s", message)
            match answer["type"]:
                case "portable":
                    deadline = on_portable(unpack(data))
                case "done":
                    return unpack(data)
                case "error":
                    raise CompileError.from_wire(answer["error"])
