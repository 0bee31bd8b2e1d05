"""The memory window as the core sees it: addresses that driver, client and host-reaching devices share."""

from __future__ import annotations

from typing import Protocol


class Window(Protocol):
    """One address range, mapped alike in the driver process and in its client."""

    @property
    def base(self) -> int:
        """First address of the range."""

    @property
    def size(self) -> int:
        """Bytes of the range."""

    def allocate(self, size: int, alignment: int = 256) -> int:
        """`size` bytes (> 0) of the window; their address. Raises MemoryError when there is no room."""

    def free(self, address: int) -> None:
        """Give back what `allocate` returned."""

    def show(self, address: int, size: int, source: int, access: int) -> None:
        """Let whole pages of an allocation show the bytes that are at `source`, or its own again.

        `access` is 0, 1 to read, 3 to read and write. In the other process its owner has to do the same.
        """

    def view(self, address: int, size: int) -> memoryview:
        """The bytes at an address of the window, writable."""
