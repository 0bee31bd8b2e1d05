"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import context, launch, managed, memory, module, pool, stream, virtual

__all__ = ["context", "launch", "managed", "memory", "module", "pool", "stream", "virtual"]
