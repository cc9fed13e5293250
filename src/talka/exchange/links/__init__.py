"""The links between workers: which of them share a host, latency and rate of each pair."""
