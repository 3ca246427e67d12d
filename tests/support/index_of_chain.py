"""Makes the index of a store, or of a branch, from the chain alone: what the rows of the ledger are compared with."""

from __future__ import annotations

from typing import Any

from graphstore.core.index.index import Index
from tests.support import branch_index
from tests.support.hidden_contents import hide


def index_of(store: Any) -> Index:
    """Return the index of all that was committed on the line of a store or branch."""
    journal = store._trunk._place.fresh_journal()
    try:
        index = Index()
        for lines in journal.read():
            for line in lines:
                index.apply(*line)
        hide(index)
        if store._trunk is store:
            return index
        record = index.branch_records.made(store.name, store._made)
        assert record is not None
        return branch_index.build(index, journal, record)
    finally:
        journal.close()
