"""Ray as an engine: tasks, gangs, and a cluster of its own on this machine."""
