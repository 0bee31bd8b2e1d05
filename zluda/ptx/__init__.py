"""PTX: grammar, typed tree, module index."""
