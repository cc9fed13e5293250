"""One rank of `benchmarks.dead_peers`: the last rank dies or stops, the others measure until they know."""

import argparse
import contextlib
import datetime
import json
import os
import signal
import threading
import time

import numpy as np
import torch
import torch.distributed as dist

from talka.channels import Mailbox, MailboxOptions
from talka.channels.group import Group
from talka.engine.gangs.torchrun import StoreRendezvous
from talka.errors import TalkaError
from talka.machine import own_address

LONG = 25_000_000  # float32: 100 MB, 8 s at 100 Mbit/s
SILENCE_S = 1.0
GLOO_S = 8


def die(how, after_s):
    def run():
        time.sleep(after_s)
        dist.distributed_c10d._get_default_store().set("death", str(time.clock_gettime(1)))
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)

    threading.Thread(target=run, daemon=True).start()


class Talka:
    def __init__(self, rank, size, how):
        rendezvous = StoreRendezvous(dist.distributed_c10d._get_default_store())
        options = MailboxOptions(silence_s=None if how == "kill" else SILENCE_S)
        address = own_address(os.environ["MASTER_ADDR"])
        self.group = Group(
            Mailbox(rank, size, rendezvous, b"k" * 32, address=address, options=options)
        )

    def meet(self):
        self.group.barrier()

    def receive(self, source, count):
        self.group.receive(source=source, out=np.zeros(count, np.float32))

    def send(self, to, count):
        self.group.mailbox.post_send(
            to, memoryview(np.zeros(4 * count, np.uint8)), tag=0, context=self.group.context
        ).wait()

    def all_reduce(self):
        self.group.all_reduce(np.zeros(LONG, np.float32), algorithm="ring")


class Gloo:
    def __init__(self, rank, size, how):
        pass

    def meet(self):
        dist.barrier()

    def receive(self, source, count):
        dist.recv(torch.zeros(count), source)

    def send(self, to, count):
        dist.send(torch.zeros(count), to)

    def all_reduce(self):
        dist.all_reduce(torch.zeros(LONG))


def situation(library, name, rank, victim):
    """Do what is going on when the victim dies."""
    others = [other for other in range(4) if other != rank]
    if name == "receive pending":
        library.receive(victim, 10)
    elif name == "posted 2 s after the death":
        time.sleep(3)
        library.receive(victim, 10)
    elif name == "100 MB receive in flight":
        library.receive(victim, LONG)
    elif name == "100 MB send in flight":
        library.send(victim, LONG)
    elif name == "all-reduce in flight":
        library.all_reduce()
    elif name == "receive from one who waits for the dead":
        library.receive(victim if rank == others[0] or rank == 0 else 0, 10)


def as_victim(library, name, how):
    die(how, 1.0)
    with contextlib.suppress(RuntimeError, TalkaError):
        if name == "100 MB receive in flight":
            sends = [threading.Thread(target=library.send, args=(to, LONG)) for to in range(3)]
            for send in sends:
                send.start()
        elif name == "100 MB send in flight":
            for source in range(3):
                library.receive(source, LONG)
        elif name == "all-reduce in flight":
            library.all_reduce()
    time.sleep(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--situation", required=True)
    parser.add_argument("--how", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=GLOO_S))
    library = {"talka": Talka, "gloo": Gloo}[args.library](rank, size, args.how)
    victim, store = size - 1, dist.distributed_c10d._get_default_store()
    store.set(f"pid {rank}", str(os.getpid()))
    library.meet()
    if rank == victim:
        as_victim(library, args.situation, args.how)
    problem = ""
    try:
        situation(library, args.situation, rank, victim)
    except (RuntimeError, TalkaError) as error:
        problem = str(error).splitlines()[0][:60]
    known_s = max(0.0, time.clock_gettime(1) - float(store.get("death")))
    if args.situation.startswith("posted"):
        known_s = max(0.0, known_s - 2.0)
    store.set(f"known {rank}", json.dumps([known_s, problem]))
    if args.situation.endswith("the dead") and rank == 0:
        time.sleep(0.2)
        if args.library == "talka":
            library.group.mailbox.close()
        else:
            dist.destroy_process_group()
    if rank == 0:
        answers = [json.loads(store.get(f"known {other}")) for other in range(size - 1)]
        with open(args.out, "w") as file:
            json.dump(answers, file)
        os.kill(int(store.get(f"pid {victim}")), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
