"""Each file answers one question: `python -m benchmarks.NAME --preset smoke|full`."""
