"""Traffic between ranks over plain sockets: `python traffic_script.py SENDER RECEIVER NUM_BYTES`.

The receiver prints payload bits per second, measured after its first 20 kB.
"""

import os
import socket
import sys
import time

PORT = 5000
SKIPPED_BYTES = 20_000  # by then the token bucket is empty


def receive(address):
    server = socket.create_server((address, PORT))
    connection, _ = server.accept()
    count, first_s, buffer = 0, None, bytearray(1 << 20)
    while num_bytes := connection.recv_into(buffer):
        count += num_bytes
        if first_s is None and count >= SKIPPED_BYTES:
            first_s, skipped = time.monotonic(), count
    if first_s is not None:
        print(8 * (count - skipped) / (time.monotonic() - first_s))


def send(address, num_bytes):
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection((address, PORT))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
    connection.sendall(bytes(num_bytes))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def main():
    sender, receiver, num_bytes = map(int, sys.argv[1:])
    rank, ranks_per_host = int(os.environ["RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    address = f"10.0.0.{receiver // ranks_per_host + 1}"
    if rank == sender:
        send(address, num_bytes)
    elif rank == receiver:
        receive(address)


if __name__ == "__main__":
    main()
