"""Ordinary training scripts: start one on several workers, and log its metrics."""
