"""What each command does, by area. Importing this registers them all."""

from zluda.server.handlers import context, launch, link, memory, module, stream

__all__ = ["context", "launch", "link", "memory", "module", "stream"]
