"""The barrier: every worker waits until all have arrived."""

from talka.channels.collectives.port import Array, Port, Steps


def barrier(port: Port, token: Array) -> Steps:
    """Notify the worker 2^k ranks further in round k: ceil(log2 P) rounds (dissemination)."""
    count = port.num_workers
    for bit in range((count - 1).bit_length()):
        to, source = (port.rank + (1 << bit)) % count, (port.rank - (1 << bit)) % count
        send = port.send(token, to, phase=bit)
        yield [port.receive(port.scratch(token), source, phase=bit)]
        yield [send]
