"""Rank 1 sends numbers to rank 0 for SECONDS, rank 2 watches the clock: `python SCRIPT SECONDS`.

Rank 0 prints the last number that arrived, rank 1 the last that it sent, rank 2 how often it stood still.
"""

import os
import socket
import sys
import time

ADDRESS = ("10.0.0.1", 5000)
SILENCE_S = 0.7
STOP_S = 0.2


def receive():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(ADDRESS)
        with socket.create_server(ADDRESS) as server:
            server.accept()[0].close()
        end.settimeout(60)
        last = -1
        while True:
            try:
                last = int(end.recv(100))
            except TimeoutError:
                break
            end.settimeout(SILENCE_S)
    print(last)


def wait_for_receiver():
    deadline = time.monotonic() + 60
    while socket.socket().connect_ex(ADDRESS) != 0:
        assert time.monotonic() < deadline


def send(seconds):
    wait_for_receiver()
    end_s, number = time.monotonic() + seconds, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        while time.monotonic() < end_s:
            number += 1
            end.sendto(str(number).encode(), ADDRESS)
            time.sleep(0.02)
    print(number)


def watch_the_clock(seconds):
    last_s = time.monotonic()
    end_s, num_stops = last_s + seconds, 0
    while last_s < end_s:
        time.sleep(0.01)
        now_s = time.monotonic()
        num_stops += now_s - last_s > STOP_S
        last_s = now_s
    print(num_stops)


def main():
    rank, seconds = int(os.environ["RANK"]), float(sys.argv[1])
    if rank == 0:
        receive()
    elif rank == 1:
        send(seconds)
    else:
        watch_the_clock(seconds)


if __name__ == "__main__":
    main()
