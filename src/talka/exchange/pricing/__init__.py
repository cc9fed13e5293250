"""The cost of exchanges: bytes and seconds, and the cheapest choice."""
