"""Connections between two processes: streams of bytes, who may use them, and messages in them."""
