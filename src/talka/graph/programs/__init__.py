"""Edge programs and general programs that users write, and their compilation into kernels."""
