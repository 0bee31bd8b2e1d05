"""The memory window: one address range mapped alike in client and driver."""
