"""The engine for Ray: tasks, gangs, and a cluster that is started on this machine."""
