"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import context, launch, memory, module, pool, stream

__all__ = ["context", "launch", "memory", "module", "pool", "stream"]
