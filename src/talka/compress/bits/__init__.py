"""Compiled kernels for packing, codes, checksums and random draws. They release the GIL."""
