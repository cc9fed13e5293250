"""Compiled loops over graphs: plain arrays in, plain arrays out."""
