"""The slow, obvious twin of talka.network.timeline: one tick after another, in whole seconds."""

from talka.network.timeline import Compute, ReceiveFrom, SendTo, Slot, Together


def slots_of(network, actions, num_ticks):
    """Return {(worker, index): slot}; lists that never end lack slots."""
    hosts = network.host_of_worker
    slots, began = {}, {}
    at, busy_until = [0] * len(actions), [0] * len(actions)
    pending, arrived = [], []  # (ready, sender, index, receiver, bytes); (tick, sender, receiver)
    out_busy, in_busy = {}, {}  # port: first tick at which it is free

    def ports(sender, receiver):
        if hosts[sender] == hosts[receiver]:
            return ("inner", sender), ("inner", receiver)
        return ("host", hosts[sender]), ("host", hosts[receiver])

    def one_thing_happens(tick):
        for worker, todo in enumerate(actions):
            if busy_until[worker] > tick or at[worker] == len(todo):
                continue
            index, action = at[worker], todo[at[worker]]
            if isinstance(action, Compute):
                slots[worker, index] = Slot(tick, tick + action.seconds)
                busy_until[worker] = tick + action.seconds
            elif isinstance(action, SendTo):
                pending.append((tick, worker, index, action.receiver, action.num_bytes))
            elif isinstance(action, ReceiveFrom):
                began.setdefault((worker, index), tick)
                found = [m for m in arrived if m[0] <= tick and m[1:] == (action.sender, worker)]
                if not found:
                    continue
                arrived.remove(found[0])
                slots[worker, index] = Slot(began[worker, index], tick)
            else:
                continue
            at[worker] += 1
            return True
        waiting = [
            todo[place] if place < len(todo) and busy <= tick else None
            for todo, place, busy in zip(actions, at, busy_until, strict=True)
        ]
        if isinstance(waiting[0], Together) and len(set(waiting)) == 1:
            for worker, action in enumerate(waiting):
                slots[worker, at[worker]] = Slot(tick, tick + action.seconds)
                busy_until[worker] = tick + action.seconds
                at[worker] += 1
            return True
        heads = {}
        for message in sorted(pending):
            heads.setdefault(ports(message[1], message[3])[0], message)
        for message in sorted(heads.values()):
            _, sender, index, receiver, num_bytes = message
            out_port, in_port = ports(sender, receiver)
            if out_busy.get(out_port, 0) > tick or in_busy.get(in_port, 0) > tick:
                continue
            path = network.path(sender, receiver)
            left = tick + round(8 * num_bytes / path.rate_bits_per_s)
            out_busy[out_port] = in_busy[in_port] = left
            slots[sender, index] = Slot(tick, left + path.latency_s)
            arrived.append((left + path.latency_s, sender, receiver))
            pending.remove(message)
            return True
        return False

    for tick in range(num_ticks):
        while one_thing_happens(tick):
            pass
    return slots
