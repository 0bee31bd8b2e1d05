"""Conformance: running the cases of spec/conformance against a device."""
