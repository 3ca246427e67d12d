"""What other processes do with a write lock in the tests: `python -m tests.ledger.lock_worker WHAT FILE …`."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from graphstore.ledger.write_lock import WriteLock


def hold(file: str, seconds: str) -> None:
    """Print `held`, and keep the lock until that time or a line on standard input."""
    lock = WriteLock(Path(file))
    lock.acquire(30)
    print("held", flush=True)
    if float(seconds):
        time.sleep(float(seconds))
    else:
        sys.stdin.readline()
    lock.release()
    print("released", flush=True)


def count(file: str, threads: str, times: str) -> None:
    """Add 1 to the number in `counter`, beside the lock, from some threads so many times each. Every thread has a lock of its own."""

    def add() -> None:
        lock = WriteLock(Path(file))
        for _ in range(int(times)):
            lock.acquire(60)
            counter.write_text(str(int(counter.read_text()) + 1))
            lock.release()

    counter = Path(file).with_name("counter")
    running = [threading.Thread(target=add) for _ in range(int(threads))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def race(file: str, seconds: str) -> None:
    """Wait for a line, then take the lock again and again; print how often."""
    lock = WriteLock(Path(file))
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + float(seconds)
    times = 0
    while time.monotonic() < end:
        lock.acquire(30)
        time.sleep(0.0001)
        times += 1
        lock.release()
    print(times, flush=True)


if __name__ == "__main__":
    {"hold": hold, "count": count, "race": race}[sys.argv[1]](*sys.argv[2:])
