"""A follower that is killed: `python lake_worker.py STORE PLACE STEP` appends what is new to Delta tables, or to a Bolt server, and is killed after so many commits."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import graphstore
from graphstore.store import change_feed

if __name__ == "__main__":
    path, place, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
    change_feed.PART = 7
    with graphstore.open(path, read_only=True) as store:
        if place.startswith("bolt:"):
            from graphstore.interchange import bolt

            bolt.PART = 7
            address, _, database = place.rpartition("/")
            copy: Any = bolt.BoltGraph(address, database=database)
            name = "_write"
        else:
            from graphstore.interchange.lake import Lake

            copy, name = Lake(place), "_append"
        once = getattr(copy, name)

        def then_killed(*args):
            global left
            done = once(*args)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(copy, name, then_killed)
        copy.write_new(change_feed.ChangeFeed(store))
