"""Transforms of gradients before an exchange: momentum, learning rates, loss scales."""
