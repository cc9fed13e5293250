"""Running programs: supersteps as tasks, messages between partitions, checkpoints, halting."""
