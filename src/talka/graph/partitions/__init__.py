"""Partitions of a graph: how it is cut, and where the partitions are placed."""
