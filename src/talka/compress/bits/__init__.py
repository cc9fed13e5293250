"""Kernels over bits: packing, codes, checksums, random draws. Compiled, and free of the GIL."""
