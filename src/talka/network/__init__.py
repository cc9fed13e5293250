"""Cost model of communication: bytes and seconds of collectives and exchanges. No sockets.

`link.py` describes a network, `cost.py` computes the cost of rounds of transfers on it, `patterns.py`
lists senders and receivers, and `collectives.py` and `exchanges.py` combine these. `schemes.py` is the
table of all schemes. `timeline.py` is for what overlaps: slots of computing and of transfers, without
bursts and overheads. `hosts_file.py` reads and writes a network as TOML.

The model
---------
- One transfer takes `latency + 8 * bytes / rate`. With a burst, that many bytes pass at once in each
  direction of a port after a pause, and again as the port's rate allows: state that one round leaves
  to the next. Costs are those after a pause, with established connections.
- Every host has one full-duplex port: all that its workers send shares the link's rate up, and all
  that they receive its rate down. Workers on the same host communicate over the inner link and do
  not use the port. Unless `workers_per_host` is given, every worker has its own host.
- A path has the larger latency of its two ends, and the smaller of the sender's rate up and the
  receiver's rate down; the core of the network is never the bottleneck.
- Transfers of one round run at the same time, rounds run one after another. A transfer ends one
  path latency after the slower of two ports is done: the sender's with all it sends in that round,
  the receiver's with all it receives. A round ends with its last transfer.
- With an overhead per message, a round takes at least its latency plus the processor time of the busiest
  rank, without its first message out and in, which the latency contains. If all hosts share cores, as
  in a lab, it takes at least the latency plus the time of all messages but one on these cores.
- Computing takes no time otherwise. Bytes are real numbers: a third of 100 bytes is 33.33; headers and
  rounding to whole values are ignored. An empty transfer still costs its latency.
- Rank 0 is the root of a tree and the master. To use another worker, reorder the links.
"""

from talka.network.collectives import (
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    ring_all_gather,
    scatter,
)
from talka.network.cost import Cost, cost_of_rounds
from talka.network.exchanges import (
    all_gather,
    colocated_servers,
    global_top_k,
    gossip,
    hierarchical,
    low_rank,
    master,
    separate_servers,
    tree,
    two_phase,
)
from talka.network.hosts_file import Hosts, NetworkHost, read_hosts, write_hosts
from talka.network.link import LOOPBACK, Link, Network, SharedCores, spread
from talka.network.schemes import COLLECTIVES, EXCHANGES, CostFunction, Scheme, cheapest_average

__all__ = [
    "COLLECTIVES",
    "EXCHANGES",
    "LOOPBACK",
    "Cost",
    "CostFunction",
    "Hosts",
    "Link",
    "Network",
    "NetworkHost",
    "Scheme",
    "SharedCores",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "cheapest_average",
    "colocated_servers",
    "cost_of_rounds",
    "gather",
    "global_top_k",
    "gossip",
    "hierarchical",
    "low_rank",
    "master",
    "read_hosts",
    "reduce",
    "reduce_scatter",
    "ring_all_gather",
    "scatter",
    "separate_servers",
    "spread",
    "tree",
    "two_phase",
    "write_hosts",
]
