"""What happens to gradients before an exchange: momentum, learning rates, loss scales."""
