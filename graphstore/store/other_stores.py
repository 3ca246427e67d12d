"""Open the other store of `GraphStore.merge_store`: a folder, a bundle, or a store that is open, here or behind a server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from graphstore.errors import InvalidError
from graphstore.ledger import backup, other_chains
from graphstore.ledger.locating import locate
from graphstore.ledger.other_chains import OtherChain

if TYPE_CHECKING:
    from graphstore.store.whole_store import WholeStore


@contextmanager
def opened(store: WholeStore, other: str | os.PathLike[str] | WholeStore) -> Iterator[OtherChain]:
    """Yield the chain of another store. Raises InvalidError for the store itself."""
    place = other if isinstance(other, str | os.PathLike) else other.path
    if other is store or (
        place is not None and store.path is not None and Path(place).absolute() == store.path.absolute()
    ):
        raise InvalidError(f"{place} is this store itself. Name another one, or a bundle of it.")
    if isinstance(other, str | os.PathLike):
        with other_chains.opened(other) as chain:
            yield chain
        return
    with bundled(other) as bundle, other_chains.opened(bundle) as chain:
        yield chain


@contextmanager
def bundled(other: str | os.PathLike[str] | WholeStore) -> Iterator[Path]:
    """Yield a whole bundle of a store, which is removed afterwards; a bundle itself if that is given."""
    if isinstance(other, str | os.PathLike) and Path(other).is_file():
        yield Path(other)
        return
    with tempfile.TemporaryDirectory(prefix="graphstore-") as folder:
        if not isinstance(other, str | os.PathLike):
            bundle = Path(folder) / f"{other.path.stem if other.path else 'other'}.bundle"
            other.export(bundle)
        else:
            bundle = Path(folder) / f"{Path(other).stem}.bundle"
            with closing(locate(other, read_only=True, create=False).read_ledger()) as ledger:
                backup.save(ledger, bundle)
        yield bundle


def free_name(chain: OtherChain, taken: Collection[str]) -> str:
    """Return a name for the branch of another store: that of its folder or file, with a number if it is taken."""
    stem = Path(chain.named).name.partition(".")[0] or "other"
    return next(
        name for number in count(1) if (name := stem if number == 1 else f"{stem}-{number}") not in taken
    )
