"""The process group of a gang: how its ranks find each other."""

import fcntl
import os
import socket
import struct
from typing import Any, NamedTuple

from talka.channels.rendezvous import Rendezvous
from talka.errors import ClusterError

_SIOCGIFADDR = 0x8915
_STORE_KEY = "talka/store"


def join_group(backend: str, *, rank: int, size: int, store: Any) -> None:
    """Join the process group of a gang."""
    import torch.distributed as dist

    dist.init_process_group(backend, store=store, rank=rank, world_size=size)


def file_store(descriptor: int, size: int) -> Any:
    """Return a store in an unnamed file, which all ranks of a machine inherit.

    Other users of this machine cannot read or set keys there, as they could in a store that listens
    on loopback.
    """
    from torch.distributed import FileStore  # type: ignore[attr-defined]  # not in its __all__

    return FileStore(f"/proc/self/fd/{descriptor}", size)


def tcp_store(address: str, rank: int, size: int, rendezvous: Rendezvous) -> Any:
    """Return a store for ranks on several machines. Rank 0 opens it, on its own address only."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in its __all__

    if rank != 0:
        host, port = rendezvous.get(_STORE_KEY).decode().rsplit(":", 1)
        return TCPStore(host, int(port), size, is_master=False)
    opened = open_store(address)
    rendezvous.set(_STORE_KEY, f"{address}:{opened.port}".encode())
    return opened.store


class OpenedStore(NamedTuple):
    """A store of torch that this process serves."""

    store: Any
    port: int


def open_store(address: str) -> OpenedStore:
    """Open a store that listens on one address, at a free port."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in its __all__

    listener = socket.create_server((address, 0))  # by default it would listen on all addresses
    port = listener.getsockname()[1]
    store = TCPStore(
        address,
        port,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )
    return OpenedStore(store, port)


def use_interface_of(address: str) -> None:
    """Make gloo use the network interface with this address."""
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(address)


def interface_of(address: str) -> str:
    """Return the network interface with this address, so that gloo need not guess it.

    >>> interface_of("127.0.0.1")
    'lo'
    """
    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # an interface without an address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    problem = "no network interface of this machine has this address"
    raise ClusterError(address, problem, "Start Ray with an address of this machine.")
