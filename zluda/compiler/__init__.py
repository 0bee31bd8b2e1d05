"""PTX text to device code: lowering, emission, supervised workers, cache."""
