"""Typed access to the machine-readable specification in spec/."""
