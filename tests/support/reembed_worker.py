"""A process that embeds all of a store's memory, and prints how far it is after each batch: to be killed.

python reembed_worker.py STORE
"""

from __future__ import annotations

import sys
import time

from embedding import Concepts

import graphstore
from graphstore.memory import Memory


def main(path: str) -> None:
    def say(done: int, total: int) -> None:
        print(done, flush=True)
        time.sleep(0.05)  # so that there is something left to be killed in

    with graphstore.open(path) as store:
        Memory(store, Concepts()).reembed(say)


if __name__ == "__main__":
    main(sys.argv[1])
