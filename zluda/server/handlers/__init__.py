"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import callback, context, launch, memory, memory_operation, module, stream

__all__ = ["callback", "context", "launch", "memory", "memory_operation", "module", "stream"]
