"""A process that lets go of what memory has kept long enough, until it is killed or until the n-th call of a function of the system.

python lifecycle_worker.py STORE NOW [FUNCTION N]
"""

from __future__ import annotations

import os
import sys

from embedding import Concepts
from forgetting_worker import exit_at

import graphstore
from graphstore import lifecycle
from graphstore.memory import Memory


def main(path: str, now: str, function: str = "", number: str = "0") -> None:
    with graphstore.open(path) as store:
        Memory(store, Concepts()).recall("car")
        os.write(1, b"ready\n")
        sys.stdin.readline()
        if function:
            exit_at(function, int(number))
        lifecycle.run(store, now)
        os.write(1, b"done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
