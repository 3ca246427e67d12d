"""Store and compare vectors of texts: every version with a text has one, and scores are exact at any coordinate.

A text has one vector, whichever version contains it, so past coordinates are searched like the present. A question is compared with all vectors, and the scores of what
stands at the coordinate count. numpy does the work and is imported only with an embedder.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.statements import Statement
from graphstore.read.index_of_rows import FORGOTTEN
from graphstore.read.points import Point
from graphstore.search.model_vectors import Pair, Vectors, hash_of
from graphstore.search.row_search import ends_of
from graphstore.values.gc_pause import no_collecting
from graphstore.values.period import OPEN
from graphstore.values.sameness import statement
from graphstore.view.core_state import CoreReader
from graphstore.view.sight import Sight

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

BATCH = 64
"""The number of texts given to an embedder at once, unless it has a `batch` of its own."""
EMBEDDER = "embedder"
"""The setting with the names of embedders: the current one first, then the one it replaces."""
_LENT = ""  # the name of a lent embedder
_PARSED = 4_096  # versions read at once
_RANKED = 4_096  # candidates ranked at once
_ROUNDING = 1e-5  # above the difference of two float32 products of the same vectors


class Embedder(Protocol):
    """Turns a list of n texts into an array (n, d) of numbers. Optional attributes: a `model`, a `dimension` d, and a `batch`, the number of texts per call."""

    def __call__(self, texts: list[str], /) -> Any:
        """Return the vectors of the texts, in their order."""


class VersionText(NamedTuple):
    """Stores the text of a version, and the node or event that it describes."""

    version: int
    entity: int
    id: str
    kind: str
    scope: str
    text: str
    thread: str | None


class _Described(NamedTuple):
    """A row of `said.sql`: a version with its content."""

    number: int
    entity: int
    id: str
    is_event: int
    kind: str
    scope: str
    data: bytes
    checksum: int


SAID = Statement("said", _Described)


def model_of(embed: Embedder) -> str:
    """Return the name of an embedder's model. Without one, return where the embedder is defined."""
    kind = embed if hasattr(embed, "__qualname__") else type(embed)
    return str(getattr(embed, "model", None) or f"{kind.__module__}:{kind.__qualname__}")


def brief(error: Exception) -> str:
    """Return an error of an embedder as one line for a note."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def said(point: Point, versions: range, kind: str | None) -> Iterator[VersionText]:
    """Yield the versions that have a text, from a range of places. `kind`: only nodes of this kind; None for all nodes and events."""
    first, stop = (point.database.line.row("version", place) for place in (versions.start, versions.stop))
    for row in point.rows(SAID, first=first, stop=stop, kind=kind):
        body = point.content(row.data, row.checksum, f"{row.id!r}")
        if (text := _text(body, bool(row.is_event))).strip():
            yield VersionText(row.number, row.entity, row.id, row.kind, row.scope, text, _thread(body))


def _text(body: Mapping[str, Any], is_event: bool) -> str:
    """Return the text of a body: the description of an event, the statement of a version. An unauthorized message gives an empty text, so no embedder gets it."""
    if is_event:
        return "" if body.get("authorized") is False else body.get("description") or ""
    return statement(body.get("content") or {}, body.get("text"))


def _thread(body: Mapping[str, Any]) -> str | None:
    thread = (body.get("content") or {}).get("thread")
    return thread if isinstance(thread, str) else None


class Meanings:
    """Holds the vectors of one embedder for the texts of a store, or of the nodes of one kind. Each read updates them. Nothing is embedded while the lock is held."""

    def __init__(self, store: CoreReader, embed: Embedder, kind: str | None = None) -> None:
        if not callable(embed):
            raise InvalidError(
                f"embedder {embed!r} cannot be called. Give a function of a list of texts, such as embedders.wordllama()."
            )
        core = store._core
        self._core, self._kind, self._embed, self._lock = core, kind, embed, core.vectors.lock
        self.model = model_of(embed)
        self.batch: int = getattr(embed, "batch", None) or BATCH
        self._vectors: Vectors = core.vectors
        self.kept = self._vectors.of_model(self.model, getattr(embed, "dimension", None))
        self._given_dimension: int | None = None  # the dimension that the embedder gave
        self._filling: threading.Thread | None = None
        self._state: int | None = None  # how often the chain had been rewritten
        self._gone = 0
        self._begin()

    def _begin(self) -> None:
        self._done = 0  # versions read so far
        self._given, self._numbered = len(self.kept.texts), self.kept.numbered  # rows assigned to versions
        # by version with a text, in order: the version, its entity, its id and text, the row of its vector (-1: none yet), and its place
        self._vers, self._ents, self._rows, self._where = array("q"), array("q"), array("q"), array("q")
        self._pairs: list[Pair] = []
        self._places: dict[_Place, int] = {}
        self._lacking: dict[bytes, list[int]] = {}  # texts without a vector -> their versions
        self._missing = 0  # the number of those versions
        self._columns: tuple[Any, ...] | None = None

    # ------------------------------------------------------------------ reading new versions

    @contextmanager
    def _held(self) -> Iterator[Point]:
        """Yield a point with everything that the store states. No other thread changes the vectors within the block."""
        with self._core.answering.snapshot() as database, self._lock:
            yield Point(database, OPEN, OPEN)

    def settle(self) -> None:
        """Read what was committed, and assign to each version the existing vector of its text. Holds the lock for some thousand versions at a time, and embeds nothing."""
        while not self._core.closed:
            with self._held() as point:
                done = self._settled(point)
            if done:
                self.kept.write()
                return

    def _settled(self, point: Point) -> bool:
        """Read some of what was committed. Returns True if nothing is left."""
        kept = self.kept
        with no_collecting():
            kept.refresh()
            done = self._follow(point)
            for row, text in enumerate(kept.texts[self._given :], self._given):
                for at in self._lacking.pop(text, ()):
                    kept.keep(self._pairs[at])
                    self._rows[at], self._columns = row, None
                    self._missing -= 1
            self._given = len(kept.texts)
            return done

    def _follow(self, point: Point) -> bool:
        """Read the texts of some committed versions. Returns True if these were the last ones."""
        ends, forgotten = ends_of(point), {row.number for row in point.rows(FORGOTTEN)}
        if ends.rewritten == self._state and len(forgotten) > self._gone:
            pairs = zip(self._pairs, self._ents, strict=True)
            self.kept.drop({id for (id, _), ent in pairs if ent in forgotten})
        now = ends.rewritten, len(forgotten), self.kept.numbered
        if now != (self._state, self._gone, self._numbered):
            self._begin()
            self._state, self._gone, _ = now
        shown = self._core.shown if self._core.is_worker else None
        last = ends.versions if shown is None else min(ends.versions, shown.versions)
        goal = min(last, self._done + _PARSED)
        if self._done < goal:
            for text in said(point, range(self._done, goal), self._kind):
                self._note(text)
            self._done, self._columns = goal, None
        return self._done >= last

    def _note(self, said: VersionText) -> None:
        pair = said.id, hash_of(said.text)
        row = self.kept.row.get(pair[1], -1)
        if row >= 0:
            self.kept.keep(pair)
        else:
            self._lacking.setdefault(pair[1], []).append(len(self._vers))
            self._missing += 1
        self._vers.append(said.version)
        self._ents.append(said.entity)
        self._pairs.append(pair)
        self._rows.append(row)
        place = _Place(said.kind, said.scope, said.thread)
        self._where.append(self._places.setdefault(place, len(self._places)))

    # ------------------------------------------------------------------ embedding

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts that have no vector yet. Raises what the embedder raises, and InvalidError if its result is not an array (n, d)."""
        self.settle()
        known = self.kept.row
        wanted = {hash_of(text): text for text in texts}
        keys = [key for key in wanted if key not in known]
        for lo in range(0, len(keys), self.batch):
            some = keys[lo : lo + self.batch]
            found = self.vectors([wanted[key] for key in some])
            with self._lock:
                self.kept.add({key: vector.tobytes() for key, vector in zip(some, found, strict=True)})

    def vectors(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts, each of length 1, or 0 if the embedder gives zeros for a text."""
        import numpy as np

        given = self._embed(texts)
        try:
            found = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.ndim != 2 or len(found) != len(texts) or not found.shape[1]:
            raise InvalidError(
                f"embedder {self.model!r} gave {type(given).__name__} of shape {found.shape} for {len(texts)} texts. It has to give an array of shape "
                f"({len(texts)}, d)."
            )
        if not np.isfinite(found).all():
            raise InvalidError(f"embedder {self.model!r} gave numbers that are not finite.")
        self._agree(found.shape[1])
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Matrix = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0).astype("<f4")
        return unit

    def _agree(self, dimension: int) -> None:
        """Adopt the dimension of the embedder's vectors; stored vectors of another dimension are dropped. Raises InvalidError if the embedder changes its dimension."""
        declared = self._given_dimension or getattr(self._embed, "dimension", None) or dimension
        if dimension != declared:
            raise InvalidError(
                f"embedder {self.model!r} gave vectors of {dimension} numbers, and of {declared} by its own word or before. Give one that keeps to a dimension."
            )
        self._given_dimension = dimension
        with self._lock:
            if self.kept.dimension not in (None, dimension):
                self.kept.clear()
            self.kept.dimension = dimension

    def lacking(self) -> int:
        """Return how many versions have no vector yet."""
        return self.counted()[1]

    def counted(self) -> tuple[int, int]:
        """Return the number of versions with a text, and how many of them have no vector yet."""
        self.settle()
        with self._lock:
            return len(self._vers), self._missing

    def fill(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every version that has no vector yet, in batches; each batch is stored at once. Returns the number embedded. Raises what the embedder raises."""
        total = left = self.lacking()
        while texts := self._texts():
            self.prepare(texts)
            left, before = self.lacking(), left
            total = max(total, left)
            if progress:
                progress(total - left, total)
            if left >= before and texts == self._texts():
                break  # no progress: texts recorded meanwhile wait for the next call
        return total - left

    def fill_beside(self, then: Callable[[], object]) -> None:
        """Embed what is missing in a thread, which ends with the store or the program. Calls `then` when all versions have a vector."""
        if self._vectors.notify is not None and not (self._filling and self._filling.is_alive()):
            self._filling = threading.Thread(
                target=self._fill_beside, args=(then,), name="graphstore-vectors"
            )
            self._filling.start()

    def _fill_beside(self, then: Callable[[], object]) -> None:
        try:
            self.fill()
            if not self._core.closed and not self.lacking():
                then()
        except Exception as error:
            notify = self._vectors.notify
            if notify is not None and not self._core.closed:
                notify(
                    f"the embedder {self.model!r} failed ({brief(error)}): what is missing has no vector yet."
                )

    def _texts(self) -> list[str]:
        """Return the next batch of texts without vectors; empty if the store or the program has ended."""
        if self._core.closed or not threading.main_thread().is_alive():
            return []
        with self._held() as point:
            self._follow(point)
            places = [places[0] for places in islice(self._lacking.values(), self.batch)]
            vers = (self._vers[place] % SPAN for place in places)
            return [each.text for ver in vers for each in said(point, range(ver, ver + 1), self._kind)]

    # ------------------------------------------------------------------ comparing

    def held(self, sight: Sight) -> tuple[Any, ...]:
        """Return the matrix of the vectors and its number of rows. For the versions with a text that stand here, also return their numbers, their rows (-1: no vector),
        their indexes into the list of places, and that list."""
        with self._lock:
            while not self._settled(sight.point):
                pass
            alive = sight.core.search.standing(sight).alive
            columns = self._arrays()
            # another thread may have read further
            known = int((columns[0] % SPAN).searchsorted(len(alive)))
            # rows are only appended, or all renumbered in a new matrix
            matrix, count, places = self.kept.matrix, len(self.kept.texts), list(self._places)
        stands = alive[columns[0][:known] % SPAN]
        return matrix, count, *(column[:known][stands] for column in columns), places

    def _arrays(self) -> tuple[Any, ...]:
        import numpy as np

        if self._columns is None:
            self._columns = tuple(
                np.array(column, dtype=np.int64) for column in (self._vers, self._rows, self._where)
            )
        return self._columns


def _least(scores: Matrix, most: int) -> float:
    """Return the score that the `most` best scores reach, with a margin for rounding."""
    import numpy as np

    return float(np.partition(scores, len(scores) - most)[len(scores) - most]) - _ROUNDING


def _exactly(matrix: Matrix, rows: Any, query: Matrix) -> list[float]:
    """Return the cosines of rows. Each is independent of the other rows requested, so equal vectors get equal scores."""
    import numpy as np

    wide, found = query.astype(np.float64), list[float]()
    for lo in range(0, len(rows), _RANKED):
        found += (matrix[rows[lo : lo + _RANKED]] * wide).sum(axis=1).tolist()
    return found


def _ranked(sight: Sight, vers: list[int], scores: list[float], most: int) -> list[tuple[int, float]]:
    """Return the `most` best entities of these versions, by cosine, then by id."""
    sight.index.read_versions(vers)
    index = sight.index
    near = zip((index.v_ent[ver] for ver in vers), scores, strict=True)
    return sorted(near, key=lambda match: (-match[1], index.names[match[0]]))[:most]


class _Place(NamedTuple):
    """Names the criteria by which a version is selected: the kind of its node or event, its scope, and its thread."""

    kind: str
    scope: str
    thread: str | None


def lend(store: CoreReader, embed: Embedder | None) -> None:
    """Use this embedder instead of the store's own while the store is open here, on its branches too."""
    store._core.vectors.lent = embed
    store._core.meanings.pop(_LENT, None)


def embedders(view: CoreReader) -> list[str]:
    """Return the names of a store's embedders: the current one first, then the one it replaces."""
    return [_LENT] if view._core.vectors.lent is not None else list(view.setting(EMBEDDER) or ())


def newest(view: CoreReader, made: Callable[[str], Embedder]) -> Meanings | None:
    """Return the vectors of the store's embedder, even if incomplete; None if it has none. `made` makes an embedder from its name."""
    names = embedders(view)
    return _meanings(view, names[0], made) if names else None


def serving(view: CoreReader, made: Callable[[str], Embedder]) -> Meanings | None:
    """Return the vectors to compare with: those of the store's embedder. While they are incomplete, return those of the previous one if it lacks less.

    Raises InvalidError if no embedder of the store can be made here.
    """
    core, names = view._core, embedders(view)
    refused, found = None, list[Meanings]()

    def drop() -> None:
        for name in names[1:]:
            if name in core.meanings:
                core.meanings.pop(name).kept.remove()

    for name in names:
        try:
            meanings = _meanings(view, name, made)
        except GraphStoreError as error:
            refused = refused or error
            continue
        if not found:
            missing = meanings.lacking()
            if not missing:
                drop()
            if missing <= meanings.batch:
                return meanings
            meanings.fill_beside(drop)
        found.append(meanings)
    if refused and not found:
        raise refused
    return min(found, key=Meanings.lacking) if found else None


def ready(view: CoreReader) -> Meanings | None:
    """Return the vectors to compare with, None without an embedder, for one that cannot be made here, and in an open transaction, whose texts have none."""
    made = type(view._core).embedder_of
    if view._core.is_worker or made is None or not embedders(view):
        return None
    try:
        return serving(view, made)
    except GraphStoreError:
        return None


def cosine(view: CoreReader, one: str, other: str) -> float | None:
    """Return how near the meanings of two texts are, None if nothing can tell."""
    meanings = ready(view)
    if meanings is None:
        return None
    with suppress(Exception):  # an embedder that fails is no obstacle
        first, second = meanings.vectors([one, other])
        return float(first @ second)
    return None


def meaning_of(view: CoreReader, text: str) -> QuestionMeaning | None:
    """Return the meaning of a text to compare with what the store says, None if nothing can tell."""
    meanings = ready(view)
    with suppress(GraphStoreError):  # what it gives is no vector
        return None if meanings is None else QuestionMeaning(meanings, text)
    return None


def _meanings(view: CoreReader, name: str, made: Callable[[str], Embedder]) -> Meanings:
    """Return the vectors of an embedder by its name, or of the lent one."""
    kept: dict[str, Meanings] = view._core.meanings
    if name not in kept:
        embed = view._core.vectors.lent if name == _LENT else None
        return kept.setdefault(name, Meanings(view, embed or made(name)))
    return kept[name]


class QuestionMeaning:
    """The vector of a question. Create it before the store's lock is taken: the embedder may be slow."""

    def __init__(self, meanings: Meanings | None, text: str, failed: str = "there is no embedder") -> None:
        self._meanings, self._failed = meanings, failed
        self._vector: Matrix | None = None
        self._compared: tuple[Matrix, Matrix] | None = None  # a matrix, and the score of each row
        self._total = self._lacking = 0
        if meanings is None:
            return
        try:
            vector = meanings.vectors([text])[0]
            if 0 < meanings.lacking() <= meanings.batch:
                meanings.fill()
            self._vector = vector
        except GraphStoreError:
            raise
        except Exception as error:
            self._failed = f"the embedder {meanings.model!r} failed ({brief(error)})"

    @property
    def note(self) -> str:
        """Return a sentence on how the search was done, and what could not be compared."""
        if self._meanings is None or self._vector is None:
            return f"full-text only: {self._failed}"
        note = f"full-text and vectors of {self._meanings.model!r}"
        if self._lacking:
            have = "has" if self._lacking == 1 else "have"
            note += f"; {self._lacking:,} of {self._total:,} {have} no vector of it yet: found by words alone"
        return note

    def seen(self, sight: Sight) -> None:
        """Accept everything."""

    def nearest(
        self,
        sight: Sight,
        most: int,
        fits: Callable[[int], bool] | None = None,
        kind: str | None = None,
        wanted: Callable[[str], bool] | None = None,
        thread: str | None = None,
    ) -> Mapping[int, float]:
        """Return the `most` nearest entities, by cosine, then by id, among those that stand here and fit.

        Filters: `kind` of the node or event, `wanted` scopes, and `thread` (things without a thread match too).
        """
        meanings, vector = self._meanings, self._vector
        if meanings is None or vector is None:
            return {}
        import numpy as np

        matrix, count, vers, rows, where, places = meanings.held(sight)
        if not (kind is None and wanted is None and thread is None):
            chosen = (
                (kind is None or place.kind == kind)
                and (wanted is None or wanted(place.scope))
                and (thread is None or place.thread is None or place.thread == thread)
                for place in places
            )
            asked = np.fromiter(chosen, dtype=bool, count=len(places))[where]
            vers, rows = vers[asked], rows[asked]
        self._total = len(rows)
        vers, rows = vers[rows >= 0], rows[rows >= 0]
        self._lacking = self._total - len(rows)
        if matrix is None or vector.shape != matrix.shape[1:] or not len(rows):
            return {}
        scores, tried = self._scores(matrix, count, vector)[rows], most
        while True:
            near = slice(None) if len(rows) <= tried else scores >= _least(scores, tried)
            exactly = _exactly(matrix, rows[near], vector)
            best = _ranked(sight, vers[near].tolist(), exactly, tried)
            if fits is not None:
                best = [match for match in best if fits(match[0])]
            if len(best) >= most or tried >= len(rows):
                return dict(best[:most])
            tried *= 4

    def _scores(self, matrix: Matrix, count: int, vector: Matrix) -> Matrix:
        """Return the score of each of the first `count` rows for the question. Computed row by row in one thread: BLAS takes five times as much processor time, and its
        threads wait for each other on a busy machine."""
        import numpy as np

        if self._compared is None or self._compared[0] is not matrix or len(self._compared[1]) != count:
            self._compared = matrix, np.einsum("ij,j->i", matrix[:count], vector)
        return self._compared[1]
