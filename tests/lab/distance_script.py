"""Rank 1 measures round trips to rank 0, then sends NUM_BYTES: `python distance_script.py NUM_BYTES`.

Rank 1 prints the shortest round trip in seconds, rank 0 the payload bits per second after slow start.
"""

import os
import socket
import sys
import time

NUM_TRIPS = 5
PORT = 5000


def serve(num_bytes):
    with socket.create_server(("10.0.0.1", PORT)) as server:
        connection, _ = server.accept()
    for _ in range(NUM_TRIPS):
        connection.sendall(connection.recv(1))
    count, buffer, marks = 0, bytearray(1 << 20), []
    while received := connection.recv_into(buffer):
        count += received
        marks.append((time.monotonic(), count))
    late = [(now_s, total) for now_s, total in marks if total > num_bytes / 2]
    (first_s, first), (last_s, last) = late[0], late[-1]
    print(8 * (last - first) / (last_s - first_s))


def connected():
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("10.0.0.1", PORT))
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def measure(num_bytes):
    connection, trips_s = connected(), []
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(NUM_TRIPS):
        start_s = time.monotonic()
        connection.sendall(b".")
        connection.recv(1)
        trips_s.append(time.monotonic() - start_s)
    print(min(trips_s))
    connection.sendall(bytes(num_bytes))


def main():
    num_bytes, rank = int(sys.argv[1]), int(os.environ["RANK"])
    if rank == 0:
        serve(num_bytes)
    elif rank == 1:
        measure(num_bytes)


if __name__ == "__main__":
    main()
