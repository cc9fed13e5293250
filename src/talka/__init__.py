"""Many ordinary machines, one job, little talk."""

__version__ = "0.1.0"
