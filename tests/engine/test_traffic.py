import socket
import threading

from talka.engine import Embedded
from talka.engine.traffic import sent_bytes


def test_bytes_are_counted_by_the_kernel():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            before = sent_bytes()
            reader = threading.Thread(target=lambda: theirs.recv(100_000, socket.MSG_WAITALL))
            reader.start()
            ours.sendall(bytes(100_000))
            reader.join()
            assert sent_bytes() - before == 100_000


def test_a_ring_all_reduce_sends_the_bytes_of_the_cost_model():
    def main(worker):
        import torch
        import torch.distributed as dist

        values = torch.ones(300_000)
        dist.barrier()
        before = sent_bytes()
        for _ in range(10):
            dist.all_reduce(values)
        return sent_bytes() - before

    from talka.network import Link, Network, all_reduce

    with Embedded() as engine:
        for size in (2, 3):
            sent = engine.gang(main, size=size)
            cost = all_reduce(Network.equal(Link(0.0, 1e9), size), 10 * 4 * 300_000)
            for measured in sent:
                assert abs(measured / cost.max_sent_bytes - 1) < 0.02
