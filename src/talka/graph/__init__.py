"""Graphs: think like a vertex, run like compiled code."""
