"""Keep the vectors of an embedder's model in a matrix in memory, which follows the table `vector` of the ledger.

A text has one vector. The table has a row for each thing with that text, so forgetting a thing removes its rows. All vectors can be computed again from the
texts; those that cannot be written stay in memory only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from graphstore.errors import GraphStoreError
from graphstore.ledger.database import Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Pair = tuple[str, bytes]
"""The id of a thing, and the hash of one of its texts."""

_NUMBER = 4  # bytes of one number of a vector
_CHECKSUM = 3  # bytes after the numbers; fewer than of a number, so the length shows if they are there
_AT_ONCE = 1_000  # rows written in one SQL transaction
_PATIENCE = 1.0  # seconds to wait for other writers
_ADD = """
INSERT OR REPLACE INTO vector (model, id, text, data) SELECT ?1, ?2, ?3, ?4
WHERE EXISTS (SELECT 1 FROM all_entity e WHERE e.id = ?2)
  AND NOT EXISTS (SELECT 1 FROM all_entity e CROSS JOIN all_forgotten f ON f.entity = e.number WHERE e.id = ?2)
"""
_REMOVE = "DELETE FROM vector WHERE model = ?"
_REMOVE_OTHERS = "DELETE FROM vector WHERE model <> ? OR length(data) NOT IN (?, ?)"
_SOME = "SELECT number, id, text, data FROM vector WHERE number > ? ORDER BY number LIMIT 1000"


class _Added(NamedTuple):
    """A row of the table `vector`. Its data are little-endian float32 numbers, followed by a checksum since this release."""

    number: int
    id: str
    text: bytes
    data: bytes


VECTORS = Statement("vectors", _Added)


def _checksum_of(id: str, text: bytes, vector: bytes) -> bytes:
    checksum = crc32(vector, crc32(text, crc32(id.encode("utf-8", "surrogatepass"))))
    return checksum.to_bytes(4, "little")[:_CHECKSUM]


def _is_whole(row: _Added) -> bool:
    """Return True if a row is what was written. A row of an earlier release has no checksum."""
    vector = row.data[: len(row.data) // _NUMBER * _NUMBER]
    return row.data[len(vector) :] in (b"", _checksum_of(row.id, row.text, vector))


def damaged_vectors(database: Database) -> int:
    """Return how many rows of the table differ from what was written."""
    count = last = 0
    while found := [_Added(*row) for row in database.rows(_SOME, (last,))]:
        count += sum(not _is_whole(row) for row in found)
        last = found[-1].number
    return count


def hash_of(text: str) -> bytes:
    """Return the hash by which the vector of a text is found."""
    return blake2b(text.encode(), digest_size=16).digest()


@dataclass
class Vectors:
    """Holds what the vectors of a store and its branches share.

    `ledger` has their table; with None they are in memory only. `notify` reports problems; None for a reader, which writes nothing. `lent` is an embedder
    that was lent to this opening.
    """

    folder: Path | None = None
    ledger: Ledger | None = None
    notify: Callable[[str], None] | None = None
    lent: Any = None
    # guards all vectors; taken after the lock of the store, for which a thread that holds it never waits
    lock: threading.RLock = field(default_factory=threading.RLock)
    # held while rows are written, by a thread outside of any transaction
    writing: threading.Lock = field(default_factory=threading.Lock)
    models: dict[tuple[str, int | None], ModelVectors] = field(default_factory=dict)

    def of_model(self, model: str, dimension: int | None) -> ModelVectors:
        """Return the vectors of a model. Without a table each caller gets its own."""
        made = ModelVectors(self, model, dimension)
        return made if self.ledger is None else self.models.setdefault((model, dimension), made)

    def close(self) -> None:
        """Stop writing."""
        with self.writing:
            self.ledger = None


class ModelVectors:
    """The vectors of one model. Hold the lock of the vectors while using it, except for `write` and the methods that remove."""

    def __init__(self, vectors: Vectors, model: str, dimension: int | None) -> None:
        self.model, self.dimension = model, dimension
        self._vectors = vectors
        self._patience = _PATIENCE
        self.numbered = 0  # how often the rows of the matrix were renumbered
        self.clear()

    def clear(self) -> None:
        """Drop everything in memory."""
        self.matrix: Matrix | None = None
        self.texts: list[bytes] = []  # the hashes of the texts, by row
        self.row: dict[bytes, int] = {}
        self._pairs: set[Pair] = set()  # pairs that the table has, or that are to be written
        self._unwritten: set[Pair] = set()
        self._read = 0  # the number of the table's row that was read last
        self.numbered += 1

    def refresh(self) -> None:
        """Read the added rows. Rows of another dimension and damaged ones are reported and skipped; their vectors are computed again."""
        ledger, another, damaged = self._vectors.ledger, False, 0
        while ledger is not None:
            found = VECTORS.rows(ledger.database, {"model": self.model, "after": self._read})
            if not found:
                break
            self._read = found[-1].number
            self.dimension = self.dimension or len(found[0].data) // _NUMBER
            fitting = [added for added in found if len(added.data) // _NUMBER == self.dimension]
            whole = [added for added in fitting if _is_whole(added)]
            self.add({added.text: added.data[: _NUMBER * self.dimension] for added in whole})
            self._pairs.update((added.id, added.text) for added in whole)
            another = another or len(fitting) < len(found)
            damaged += len(fitting) - len(whole)
        if damaged:
            self._notice(f"damaged vectors of {self.model!r}: {damaged}. They are made of the texts again.")
        if another:
            self._notice(f"vectors of {self.model!r} had another dimension: they are made anew.")

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Add the vectors of texts that have none yet to the matrix."""
        import numpy as np

        vectors = {text: data for text, data in vectors.items() if text not in self.row}
        if not vectors:
            return
        assert self.dimension is not None
        fresh = np.frombuffer(b"".join(vectors.values()), dtype="<f4").reshape(-1, self.dimension)
        count, end = len(self.texts), len(self.texts) + len(fresh)
        if self.matrix is None or end > len(self.matrix):
            grown = np.zeros((max(1024, 2 * count, end), self.dimension), dtype=np.float32)
            if self.matrix is not None:
                grown[:count] = self.matrix[:count]
            self.matrix = grown
        self.matrix[count:end] = fresh
        self.row.update(zip(vectors, range(count, end), strict=True))
        self.texts.extend(vectors)

    def keep(self, pair: Pair) -> None:
        """Record that a thing has a text with a vector, for `write`."""
        if pair not in self._pairs:
            self._pairs.add(pair)
            if self._vectors.ledger is not None and self._vectors.notify is not None:
                self._unwritten.add(pair)

    def drop(self, ids: Container[str]) -> None:
        """Drop the vectors of texts that only these things have. Their rows were removed from the table before."""
        left = {pair for pair in self._pairs if pair[0] not in ids}
        if self.matrix is None or len(left) == len(self._pairs):
            return
        self._pairs, self._unwritten = left, self._unwritten & left
        said = {text for _, text in left}
        self.texts = [text for text in self.texts if text in said]
        self.matrix = self.matrix[[self.row[text] for text in self.texts]]
        self.row = {text: row for row, text in enumerate(self.texts)}
        self.numbered += 1

    # ------------------------------------------------------------------ writing

    def write(self) -> None:
        """Write what the table lacks. After a failure the next call tries again."""
        while (rows := self._some_unwritten()) and self._run(_ADD, rows):
            with self._vectors.lock:
                self._unwritten.difference_update((id, text) for _, id, text, _ in rows)

    def _some_unwritten(self) -> list[tuple[str, str, bytes, bytes]]:
        with self._vectors.lock:
            pairs, matrix = islice(self._unwritten, _AT_ONCE), self.matrix
            if matrix is None:
                return []
            vectors = ((id, text, matrix[self.row[text]].astype("<f4").tobytes()) for id, text in pairs)
            return [(self.model, id, text, data + _checksum_of(id, text, data)) for id, text, data in vectors]

    def remove(self) -> None:
        """Remove all vectors, from the table too."""
        with self._vectors.lock:
            self.clear()
        self._run(_REMOVE, [(self.model,)])

    def remove_others(self) -> None:
        """Remove the rows of other models, and of other dimensions, which count as other models."""
        length = _NUMBER * (self.dimension or 0)
        self._run(_REMOVE_OTHERS, [(self.model, length, length + _CHECKSUM)])

    def _run(self, statement: str, values: Sequence[tuple[Any, ...]]) -> bool:
        """Run a statement in its own SQL transaction. Return False if that is impossible, as within a transaction of this thread.

        It waits for other writers; after a failure it does not wait again until a write has succeeded.
        """
        ledger, writing = self._vectors.ledger, self._vectors.writing
        if ledger is None or self._vectors.notify is None or ledger.broken or ledger.database.writes_here:
            return False
        try:
            with writing, ledger.database.transaction(self._patience) as connection:
                connection.executemany(statement, values)
        except GraphStoreError as error:
            if self._patience:
                self._notice(f"cannot write vectors of {self.model!r}: {error} They are in memory only.")
            self._patience = 0.0
            return False
        self._patience = _PATIENCE
        return True

    def _notice(self, notice: str) -> None:
        if self._vectors.notify is not None:
            self._vectors.notify(notice)
