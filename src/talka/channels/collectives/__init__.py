"""Collectives: one file per pattern, written once for users, exchanges and any kind of array.

A pattern is a generator: it posts sends and receives through a `Port` and yields the operations
that it waits for. Users' collectives run it to its end; exchanges interleave several of them.
"""
