"""Gangs: worker processes of this machine that start together and share a process group."""
