"""Loops over graphs, compiled. Plain arrays in, plain arrays out."""
