"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import context, graph, launch, memory, module, stream

__all__ = ["context", "graph", "launch", "memory", "module", "stream"]
