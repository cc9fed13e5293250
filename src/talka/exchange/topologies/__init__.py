"""Exchanges, one file for each pattern of communication."""
