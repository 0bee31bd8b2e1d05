"""The driver process: takes commands off the ring, hands them to the core, answers."""
