"""The C client libraries and the generator that makes them from spec/."""
