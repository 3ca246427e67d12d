"""A follower that is killed: `python lake_worker.py STORE PLACE STEP` appends what is new to Delta tables, or to a Bolt server, and is killed after so many commits."""

from __future__ import annotations

import os
import signal
import sys

import graphstore
from graphstore.interchange.lake import Lake
from graphstore.store import change_feed

if __name__ == "__main__":
    path, place, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
    change_feed.PART = 7
    lake, appended = Lake(place), Lake._append

    def append(*args):
        global left
        appended(lake, *args)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    lake._append = append
    with graphstore.open(path, read_only=True) as store:
        lake.take(change_feed.ChangeFeed(store))
