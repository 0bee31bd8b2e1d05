"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import (
    callback,
    context,
    graph,
    launch,
    link,
    managed,
    memory,
    memory_operation,
    module,
    pool,
    stream,
    virtual,
)

__all__ = [
    "callback",
    "context",
    "graph",
    "launch",
    "link",
    "managed",
    "memory",
    "memory_operation",
    "module",
    "pool",
    "stream",
    "virtual",
]
