"""How a program runs: supersteps as tasks, messages between partitions, checkpoints, halting."""
