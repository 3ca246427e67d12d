"""A process that forgets until it is killed, or until the n-th call of one of the system's functions.

    python forgetting_worker.py STORE HOW FIRST [FUNCTION N]

Things are numbered from FIRST on. It prints `begin NAME` before it forgets one, and `done NAME` after the call has returned.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import graphstore
from graphstore.ledger import database
from graphstore.ledger.database import LedgerConnection

PATHS = ("replace", "rename", "unlink")


def say(word: str) -> None:
    os.write(1, word.encode() + b"\n")


def exit_at(function: str, number: int) -> None:
    """End the process at that call, as a kill would: nothing is flushed or tidied. The function `statement` is any statement of SQL that writes."""
    if function == "statement":
        exit_at_statement(number)
        return
    owner: Any = Path if function in PATHS else os
    before, count = getattr(owner, function), 0

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            os._exit(7)
        return before(*args, **kwargs)

    setattr(owner, function, counting)


def exit_at_statement(number: int) -> None:
    """End the process before the writing connection of a store runs its n-th statement that writes."""
    count = 0

    def counted(statement: str) -> None:
        nonlocal count
        count += not statement.lstrip().startswith("SELECT")
        if count == number:
            os._exit(7)

    class Counting(LedgerConnection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            counted(statement)
            return super().execute(statement, *values)

        def executemany(self, statement: str, *values: Any) -> sqlite3.Cursor:
            counted(statement)
            return super().executemany(statement, *values)

    database.LedgerConnection = Counting  # type: ignore[misc]


def main(path: str, how: str, first: int, function: str = "", number: int = 0) -> None:
    with graphstore.open(path) as store:
        names = [event.id for event in reversed(store.events())]
        for branch in store.branches():
            names += [event.id for event in store.on(branch.name).events() if event.id not in names]
        store.query_tables("MATCH (n) RETURN count(*)")
        say("ready")
        sys.stdin.readline()
        if function:
            exit_at(function, number)
        for name in names[first:]:
            say(f"begin {name}")
            if how == "erase":
                store.erase(name, reason="asked for")
            else:
                store.evict(ids=[name], keep_audit=how == "evict")
            say(f"done {name}")
            if function:
                break
    say("closed")


if __name__ == "__main__":
    main(*sys.argv[1:3], int(sys.argv[3]), *sys.argv[4:5], *map(int, sys.argv[5:6]))
