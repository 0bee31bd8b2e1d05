"""The memory window: one address range mapped alike in client and driver."""

from zluda.window.window import DEFAULT_SIZE, Window, WindowError, attach, open_window

__all__ = ["DEFAULT_SIZE", "Window", "WindowError", "attach", "open_window"]
