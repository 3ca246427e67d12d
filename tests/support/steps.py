"""What a call costs, counted: the steps of the interpreter, which are the same on every machine and under any load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from graphstore import GraphStore
from graphstore.ledger.ledger import Ledger
from graphstore.values import random_bits


def steps(call: Callable[[], object]) -> int:
    """How many instructions of Python a call runs in this thread, those of what it calls included; one of C counts once, however long it takes."""
    count = 0

    def each(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "opcode"
        return each

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        return each

    random_bits._drawn.clear()
    random_bits.random_64()  # every 512th draws many more, which is not the call's either
    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what a collection would end is not the call's
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def statement_steps(store: GraphStore, call: Callable[[], object]) -> int:
    """How many instructions SQLite runs on the connection by which a store in a folder writes. The store has written before."""
    journal = store._trunk._core.journal
    assert isinstance(journal, Ledger)
    count = 0

    def each() -> None:
        nonlocal count
        count += 1

    journal.database.writer.set_progress_handler(each, 1)
    try:
        call()
    finally:
        journal.database.writer.set_progress_handler(None, 1)
    return count


def growth(calls: Callable[[int], Callable[[], object]], few: int, many: int) -> float:
    """How many times the steps grow where the size does from `few` to `many`; `calls` makes the call for a size."""
    return steps(calls(many)) / steps(calls(few))
