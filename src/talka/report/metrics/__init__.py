"""Curves of the metrics that training scripts log."""
