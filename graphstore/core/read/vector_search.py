"""What texts mean, as vectors: kept for every version that says something, and compared exactly over what stands at any coordinate.

A text has one vector, in whatever version it occurs. So the past is searched like the present: a question is compared with all vectors before the store's
lock is taken, and of the scores those count that stand at the coordinate. numpy does the work, and is imported when there is an embedder.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphstore.core.folder import vector_file as disk
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.read.sight import Sight
from graphstore.core.read.view import Reader
from graphstore.core.search.texts_to_embed import Said, Texts, TextsOfIndex, TextsOfRows
from graphstore.errors import DamageError, GraphStoreError, InvalidError
from graphstore.ledger.branch_rows import SPAN
from graphstore.read.points import Point
from graphstore.values.period import OPEN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

BATCH = 64
"""The number of texts given to an embedder at once, unless it has a `batch` of its own."""
EMBEDDER = "embedder"
"""The setting: the names of embedders, that of now first, then the one it replaces."""
_LENT = ""  # the name of one that was lent
_TEXT = slice(16, 32)  # the part of a row's key that identifies the text
_PARSED = 4_096  # versions followed at once
_RANKED = 4_096  # candidates ranked at once
_ROUNDING = 1e-5  # more than two float32 products of the same vectors differ by


class Embedder(Protocol):
    """Turns a list of n texts into an array (n, d) of numbers. It may have a `model`, a `dimension` d, and a `batch`: how many texts it takes at once."""

    def __call__(self, texts: list[str], /) -> Any:
        """The vectors of the texts, in their order."""


def model_of(embed: Embedder) -> str:
    """The name of an embedder's model; of one that has none, where it is from."""
    kind = embed if hasattr(embed, "__qualname__") else type(embed)
    return str(getattr(embed, "model", None) or f"{kind.__module__}:{kind.__qualname__}")


def brief(error: Exception) -> str:
    """An error of an embedder in a line of a note."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


@dataclass
class Vectors:
    """Where the vectors of a store and its branches are kept, who hears what goes wrong (None: a reader, which writes nothing), and the embedder that
    this opening was lent."""

    folder: Path | None = None
    notify: Callable[[str], None] | None = None
    lent: Embedder | None = None
    # guards all vectors; it is taken after the lock of the store, for which nobody waits while he holds it
    lock: threading.RLock = field(default_factory=threading.RLock)


class Shelf:
    """The vectors of one model: a matrix in memory, and the file beside the journal that it comes from. Use it with the lock of the vectors held."""

    def __init__(
        self, folder: Path | None, model: str, dimension: int | None, notify: Callable[[str], None] | None
    ) -> None:
        self.model, self.dimension = model, dimension
        self._path = None if folder is None else disk.file_of(folder, model)
        self._notify = notify  # None: a reader, which writes nothing
        self._header: disk.Header | None = None
        self._seen = (0, 0)  # the file's inode, and how far it was read
        self.row: dict[bytes, int] = {}
        self.of_text: dict[bytes, int] = {}
        self.matrix: Matrix | None = None
        self.numbered = 0  # how often the rows were numbered anew

    def clear(self) -> None:
        """Let go of everything."""
        self.row, self.of_text, self.matrix, self.numbered = {}, {}, None, self.numbered + 1
        self._header, self._seen = None, (0, 0)

    def keep_only(self, keys: Iterable[bytes]) -> None:
        """Let go of all but these in memory."""
        kept = [self.row_of(key, self.row[key]) for key in keys if key in self.row]
        self.row, self.of_text, self.matrix, self.numbered = {}, {}, None, self.numbered + 1
        self.add(kept)

    def add(self, rows: Sequence[disk.Row]) -> None:
        """Take rows into memory."""
        import numpy as np

        if not rows:
            return
        assert self.dimension is not None
        fresh = np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4").reshape(-1, self.dimension)
        count = len(self.row)
        if self.matrix is None or count + len(rows) > len(self.matrix):
            grown = np.zeros((max(1024, 2 * count, count + len(rows)), self.dimension), dtype=np.float32)
            if self.matrix is not None:
                grown[:count] = self.matrix[:count]
            self.matrix = grown
        for row, vector in zip(rows, fresh, strict=True):
            at = self.row.setdefault(row.key, len(self.row))
            self.matrix[at] = vector
            self.of_text.setdefault(row.key[_TEXT], at)

    def refresh(self) -> None:
        """Read what the file holds and memory does not. Rows that are damaged, or of another dimension, are reported and left out."""
        if self._path is None:
            return
        try:
            stat = self._path.stat()
            if (stat.st_ino, stat.st_size) == self._seen:
                return
            again = stat.st_ino == self._seen[0] and self._header is not None
            header = self._header if again else disk.read_header(self._path)
            if header is None or header.model != self.model or self.dimension not in (None, header.dimension):
                self._refuse(stat.st_ino, stat.st_size)
                return
            found = disk.read(self._path, header, self._seen[1] if again else 0)
        except FileNotFoundError:
            self._header, self._seen = None, (0, 0)
            return
        except OSError as error:
            self._header, self._seen = None, (0, 0)
            self._notice(f"cannot read {self._path}: {error.strerror}. Its vectors are made anew.")
            return
        self._header, self.dimension = header, header.dimension
        self.add(found.rows)
        self._seen = (stat.st_ino, found.end)
        if found.damaged:
            self._notice(f"{found.damaged} vectors in {self._path} were damaged: they are made anew.")
        if self._notify is not None and not again and disk.worth_writing_anew(found):
            self._write(found.rows)

    def _refuse(self, inode: int, size: int) -> None:
        if self._notify is None:
            self._seen = (inode, size)
            return
        assert self._path is not None
        self._notice(f"{self._path} was damaged or of another model: its vectors are made anew.")
        self._header, self._seen = None, (0, 0)
        try:
            disk.remove([self._path])
        except OSError as error:
            self._notice(f"cannot remove {self._path}: {error.strerror}.")

    def keep(self, rows: Sequence[disk.Row], others: Callable[[], list[disk.Row]]) -> None:
        """Write rows into the file. If there is none, `others` gives the rows that memory already has. When the disk refuses, that is only reported."""
        if self._path is None or self._notify is None:
            return
        if self._header is None or not os.path.lexists(self._path):
            self._write([*others(), *rows])
            return
        try:
            end = disk.append(self._path, self._header, rows)
            self._seen = (self._path.stat().st_ino, end)
        except OSError as error:
            self._notice(f"cannot write {self._path}: {error.strerror}. Its vectors are in memory only.")

    def _write(self, rows: Sequence[disk.Row]) -> None:
        assert self._path is not None and self.dimension is not None
        try:
            self._header = disk.write(self._path, self.model, self.dimension, rows)
            stat = self._path.stat()
            self._seen = (stat.st_ino, stat.st_size)
        except OSError as error:
            self._notice(f"cannot write {self._path}: {error.strerror}. Its vectors are in memory only.")

    def _notice(self, notice: str) -> None:
        if self._notify is not None:
            self._notify(notice)

    def remove(self) -> None:
        """Let go of everything, and of the file."""
        self.clear()
        if self._path is not None and self._notify is not None:
            disk.remove([self._path] if os.path.lexists(self._path) else [])

    def remove_others(self) -> None:
        """Remove the files of other models."""
        if self._path is not None and self._notify is not None:
            disk.remove([path for path in disk.files(self._path.parent) if path != self._path])

    def row_of(self, key: bytes, at: int) -> disk.Row:
        """A row as the file has it."""
        import numpy as np

        assert self.matrix is not None
        return disk.Row(key, self.matrix[at].astype(np.dtype("<f4")).tobytes())


class Meanings:
    """The vectors of one embedder for what a store says, or the nodes of one kind. It follows the store on each read, and embeds nothing while it holds the
    lock."""

    def __init__(self, store: Reader, embed: Embedder, kind: str | None = None) -> None:
        if not callable(embed):
            raise InvalidError(
                f"embedder {embed!r} cannot be called. Give a function of a list of texts, such as embedders.wordllama()."
            )
        core = store._core
        self._core, self._kind, self._embed, self._lock = core, kind, embed, core.vectors.lock
        self.model = model_of(embed)
        self.batch: int = getattr(embed, "batch", None) or BATCH
        self._notify = core.vectors.notify
        self._shelf = Shelf(core.vectors.folder, self.model, getattr(embed, "dimension", None), self._notify)
        self._given_dimension: int | None = None  # the dimension that the embedder gave
        self._spare: dict[bytes, bytes] = {}  # of texts that are not committed yet
        self._filling: threading.Thread | None = None
        self._state: Hashable = None
        self._gone = 0
        self._begin()

    def _begin(self) -> None:
        # by version that says something, in their order: the version, its entity, its row's key, that row (-1: none yet), its kind, scope and thread
        self._done = 0
        self._vers, self._ents, self._rows = array("q"), array("q"), array("q")
        self._keys: list[bytes] = []
        self._kinds, self._scopes, self._threads = array("q"), array("q"), array("q")
        self._kind_of: dict[str, int] = {}
        self._scope_of: dict[str, int] = {}
        self._thread_of: dict[str | None, int] = {None: 0}
        self._lacking: dict[bytes, list[int]] = {}  # texts without a vector -> their versions
        self._missing = 0  # how many these are
        self._fresh: set[bytes] = set()  # those of them not looked for yet
        self._columns: tuple[Any, ...] | None = None

    # ------------------------------------------------------------------ following

    @contextmanager
    def _held(self, point: Point | None = None) -> Iterator[Texts]:
        """A block in which nobody else changes the vectors. Gives what the store says: at a point of its rows, else wherever it reads."""
        core, ledger = self._core, self._core.answering
        if point is not None:
            with self._lock:
                yield self._of_rows(point)
        elif ledger is not None:
            with ledger.snapshot() as database, self._lock:
                yield self._of_rows(Point(database, OPEN, OPEN))
        else:
            with core.lock, self._lock:
                yield TextsOfIndex(core)

    def _of_rows(self, point: Point) -> TextsOfRows:
        core = self._core
        shown = core.shown if core.is_worker else None
        return TextsOfRows(point, core.working is not None, OPEN if shown is None else shown.versions)

    def settle(self) -> None:
        """Follow what was committed, and give each version the vector of its text where there is one. Takes the lock for some thousand versions at a time,
        and embeds nothing."""
        while not self._core.closed:
            try:
                with self._held() as texts:
                    if self._settled(texts):
                        return
            except DamageError:
                if self._core.answering is None:
                    raise
                self._core.read_index()  # it tells the line

    def _settled(self, texts: Texts) -> bool:
        """Follow some of what was committed. Gives whether that was all."""
        with no_collecting():
            shelf, before = self._shelf, len(self._shelf.row)
            shelf.refresh()
            self._follow(texts)
            wanted = self._fresh.union(self._spare)
            if len(shelf.row) != before:
                wanted.update(self._lacking)
            known, rows = len(shelf.row), self._rows_for(wanted)
            shelf.add(rows)
            for text in wanted & self._lacking.keys():
                self._give(text)
            if rows:
                shelf.keep(rows, lambda: self._known(known))
            self._fresh.clear()
            done = self._done >= texts.versions
            if done and not texts.pending:
                self._spare.clear()
            return done

    def _rows_for(self, texts: set[bytes]) -> list[disk.Row]:
        """The rows to be made for the versions with one of these texts, each of which has a vector or is spare."""
        shelf, made = self._shelf, {}
        for text in sorted(texts & self._lacking.keys(), key=lambda text: self._lacking[text][0]):
            twin = shelf.of_text.get(text)
            for key in (self._keys[at] for at in self._lacking[text]):
                if key in shelf.row or key in made:
                    continue
                if twin is not None:
                    made[key] = shelf.row_of(key, twin)
                elif text in self._spare:
                    made[key] = disk.Row(key, self._spare[text])
        return list(made.values())

    def _give(self, text: bytes) -> None:
        """Set the rows of the versions with this text, if there are any by now."""
        left = []
        for at in self._lacking[text]:
            row = self._shelf.row.get(self._keys[at], -1)
            if row < 0:
                left.append(at)
            self._rows[at] = row
        self._columns = None
        self._missing -= len(self._lacking[text]) - len(left)
        if left:
            self._lacking[text] = left
        else:
            del self._lacking[text]

    def _known(self, upto: int) -> list[disk.Row]:
        """The rows in memory for recorded texts, among the first rows."""
        rows = self._shelf.row
        there = {key: rows[key] for key in self._keys if rows.get(key, upto) < upto}
        return [self._shelf.row_of(key, row) for key, row in there.items()]

    def _follow(self, texts: Texts) -> None:
        if texts.state != self._state or texts.gone < self._gone:
            self._begin()
            self._state = texts.state
        elif texts.gone > self._gone:
            self._let_go(texts)
        self._gone = texts.gone
        goal = min(texts.versions, self._done + _PARSED)
        if self._done < goal:
            for said in texts.said(range(self._done, goal), self._kind):
                self._note(said)
            self._done, self._columns = goal, None

    def _note(self, said: Said) -> None:
        key = disk.key_of(said.id, said.text)
        row = self._shelf.row.get(key, -1)
        if row < 0:
            self._lacking.setdefault(key[_TEXT], []).append(len(self._vers))
            self._missing += 1
            self._fresh.add(key[_TEXT])
        self._vers.append(said.version)
        self._ents.append(said.entity)
        self._keys.append(key)
        self._rows.append(row)
        self._kinds.append(self._kind_of.setdefault(said.kind, len(self._kind_of)))
        self._scopes.append(self._scope_of.setdefault(said.scope, len(self._scope_of)))
        self._threads.append(self._thread_of.setdefault(said.thread, len(self._thread_of)))

    def _let_go(self, texts: Texts) -> None:
        """Of what was forgotten since. In the file it is blanked already."""
        forgotten = texts.forgotten()
        kept = (key for key, ent in zip(self._keys, self._ents, strict=True) if ent not in forgotten)
        self._shelf.keep_only(dict.fromkeys(kept))
        self._begin()

    # ------------------------------------------------------------------ embedding

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed those of the texts that have no vector yet. Raises what the embedder raises, InvalidError for what is no array (n, d)."""
        self.settle()
        known = self._shelf.of_text
        wanted = {disk.key_of("", text)[_TEXT]: text for text in texts}
        wanted = {key: text for key, text in wanted.items() if key not in known and key not in self._spare}
        keys = list(wanted)
        for lo in range(0, len(keys), self.batch):
            some = keys[lo : lo + self.batch]
            for key, vector in zip(some, self.vectors([wanted[key] for key in some]), strict=True):
                self._spare[key] = vector.tobytes()

    def vectors(self, texts: list[str]) -> Matrix:
        """The vectors of texts, each of length 1 (or 0, for a text that means nothing to the embedder)."""
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
        """Adopt the dimension of the embedder's vectors, whatever a file has."""
        declared = self._given_dimension or getattr(self._embed, "dimension", None) or dimension
        if dimension != declared:
            raise InvalidError(
                f"embedder {self.model!r} gave vectors of {dimension} numbers, and of {declared} by its own word or before. Give one that keeps to a dimension."
            )
        self._given_dimension = dimension
        with self._lock:
            if self._shelf.dimension not in (None, dimension):
                self._shelf.clear()
                self._begin()
            self._shelf.dimension = dimension

    def lacking(self) -> int:
        """How many versions have no vector yet."""
        return self.counted()[1]

    def counted(self) -> tuple[int, int]:
        """How many versions say something, and how many of them have no vector yet."""
        self.settle()
        with self._lock:
            return len(self._vers), self._missing

    def fill(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every version that has no vector yet, a batch at a time, each kept when it is done. Gives how many. Raises what the embedder raises."""
        total = left = self.lacking()
        while texts := self._texts():
            self.prepare(texts)
            left, before = self.lacking(), left
            total = max(total, left)
            if progress:
                progress(total - left, total)
            if left == before == total and texts == self._texts():
                break  # no progress: texts recorded meanwhile are left for the next call
        return total - left

    def fill_few(self) -> None:
        """Embed what is missing if one batch is enough."""
        if 0 < self.lacking() <= self.batch:
            self.fill()

    def fill_beside(self, then: Callable[[], object]) -> None:
        """Embed what is missing in a thread of its own, which ends with the store or the program, and calls `then` when all have a vector."""
        if self._notify is not None and not (self._filling and self._filling.is_alive()):
            self._filling = threading.Thread(
                target=self._fill_beside, args=(then,), name="graphstore-vectors"
            )
            self._filling.start()

    def _fill_beside(self, then: Callable[[], object]) -> None:
        program = threading.main_thread()
        try:
            while program.is_alive() and (texts := self._texts()):
                before = self.lacking()
                self.prepare(texts)
                if self.lacking() >= before and texts == self._texts():
                    return
            if not self._core.closed and not self.lacking():
                then()
        except Exception as error:
            if self._notify is not None and not self._core.closed:
                self._notify(
                    f"the embedder {self.model!r} failed ({brief(error)}): what is missing has no vector yet."
                )

    def _texts(self) -> list[str]:
        """The texts of the next batch that has no vectors."""
        if self._core.closed:
            return []
        with self._held() as texts:
            self._follow(texts)
            places = [places[0] for places in islice(self._lacking.values(), self.batch)]
            vers = (self._vers[place] % SPAN for place in places)
            return [said.text for ver in vers for said in texts.said(range(ver, ver + 1), self._kind)]

    def remove(self) -> None:
        """Let go of all vectors, and of their file."""
        with self._lock:
            self._shelf.remove()
            self._begin()

    def remove_others(self) -> None:
        """Remove the vectors of other models: every text has one of this."""
        with self._lock:
            self._shelf.remove_others()

    # ------------------------------------------------------------------ comparing

    def compared(self, query: Matrix) -> Compared:
        """How near every vector there is comes to the query. The product is made without the lock: rows are only added, or all numbered anew."""
        self.settle()
        with self._lock:
            matrix, count, numbered = self._shelf.matrix, len(self._shelf.row), self._shelf.numbered
        return Compared(query, numbered, None if matrix is None else _product(matrix[:count], query))

    def _scores(self, compared: Compared) -> Matrix | None:
        """The scores of all rows there are now."""
        import numpy as np

        matrix, count = self._shelf.matrix, len(self._shelf.row)
        if matrix is None or compared.query.shape != matrix.shape[1:]:
            return None
        known = compared.scores
        if known is None or compared.numbered != self._shelf.numbered:
            return _product(matrix[:count], compared.query)
        if len(known) == count:
            return known
        return np.append(known, _product(matrix[len(known) : count], compared.query))

    def nearest(
        self,
        sight: Sight,
        most: int,
        compared: Compared,
        fits: Callable[[int], bool] | None = None,
        kind: str | None = None,
        wanted: Callable[[str], bool] | None = None,
        thread: str | None = None,
    ) -> Nearest:
        """The `most` entities nearest to the query, by cosine, then by id, among what stands here (of this kind, in these scopes, in this thread or none) and
        fits; and how many that stand here have no vector.
        """
        import numpy as np

        with self._held(sight.point) as texts:
            while not self._settled(texts):
                pass
            alive = sight.core.search.standing(sight).alive
            columns = self._arrays()
            # another thread may have followed farther
            known = int((columns[0] % SPAN).searchsorted(len(alive)))
            vers, rows, of_kind, scopes, threads = (column[:known] for column in columns)
            found, matrix = self._scores(compared), self._shelf.matrix
        mask = alive[vers % SPAN]
        if kind is not None:
            mask &= of_kind == self._kind_of.get(kind, -1)
        if wanted is not None:
            mask &= _chosen(self._scope_of, wanted)[scopes]
        if thread is not None:
            mask &= (threads == 0) | (threads == self._thread_of.get(thread, -1))
        there = np.flatnonzero(mask & (rows >= 0))
        total = int(np.count_nonzero(mask))
        lacking = total - len(there)
        if found is None or matrix is None or not len(there):
            return Nearest({}, total, lacking)
        scores = found[rows[there]]
        best, tried = list[tuple[int, float]](), most
        while True:
            near = there if len(there) <= tried else there[scores >= _least(scores, tried)]
            exactly = _exactly(matrix, rows[near], compared.query)
            ranked = _ranked(sight, vers[near].tolist(), exactly, tried)
            best = ranked if fits is None else [match for match in ranked if fits(match[0])]
            if len(best) >= most or tried >= len(there):
                return Nearest(dict(best[:most]), total, lacking)
            tried *= 4

    def _arrays(self) -> tuple[Any, ...]:
        import numpy as np

        if self._columns is None:
            self._columns = tuple(
                np.array(column, dtype=np.int64)
                for column in (self._vers, self._rows, self._kinds, self._scopes, self._threads)
            )
        return self._columns


def _least(scores: Matrix, most: int) -> float:
    """What the `most` best scores reach, however they were rounded."""
    import numpy as np

    return float(np.partition(scores, len(scores) - most)[len(scores) - most]) - _ROUNDING


def _exactly(matrix: Matrix, rows: Any, query: Matrix) -> list[float]:
    """The cosines of rows, each the same whichever others are asked with it: equal vectors are equally near."""
    import numpy as np

    wide, found = query.astype(np.float64), list[float]()
    for lo in range(0, len(rows), _RANKED):
        found += (matrix[rows[lo : lo + _RANKED]] * wide).sum(axis=1).tolist()
    return found


def _ranked(sight: Sight, vers: list[int], scores: list[float], most: int) -> list[tuple[int, float]]:
    """The `most` best entities of these versions, by cosine, then by id."""
    sight.read_versions(vers)
    index = sight.index
    near = zip((index.v_ent[ver] for ver in vers), scores, strict=True)
    return sorted(near, key=lambda match: (-match[1], index.names[match[0]]))[:most]


def _product(rows: Matrix, query: Matrix) -> Matrix:
    """How near each row comes to a query. Row by row in one thread: the product of BLAS takes five times as much of the processor, in threads that wait
    for each other where the machine is busy."""
    import numpy as np

    found: Matrix = np.einsum("ij,j->i", rows, query)
    return found


def _chosen(numbers: Mapping[str, int], wanted: Callable[[str], bool]) -> Any:
    """Which of the numbered names are wanted."""
    import numpy as np

    return np.fromiter(map(wanted, numbers), dtype=bool, count=len(numbers))


class Compared(NamedTuple):
    """A query's vector, and how near each row comes to it, as the rows were numbered then."""

    query: Matrix
    numbered: int
    scores: Matrix | None


class Nearest(NamedTuple):
    """What is nearest, best first, with its cosine; how many that stand and are asked for say something, and how many of these have no vector."""

    near: dict[int, float]
    total: int
    lacking: int


def lend(store: Reader, embed: Embedder | None) -> None:
    """Use this embedder instead of the one the store is set to, for as long as it is open here, on its branches too."""
    store._core.vectors.lent = embed
    store._core.meanings.pop(_LENT, None)


def embedders(view: Reader) -> list[str]:
    """The names of a store's embedders: the one that is to have all, then the one it replaces."""
    return [_LENT] if view._core.vectors.lent is not None else list(view._setting(EMBEDDER) or ())


def newest(view: Reader, made: Callable[[str], Embedder]) -> Meanings | None:
    """The vectors of the store's embedder, whether they serve yet or not; None: it has none. `made` gives an embedder by its name."""
    names = embedders(view)
    return _meanings(view, names[0], made) if names else None


def serving(view: Reader, made: Callable[[str], Embedder]) -> Meanings | None:
    """The vectors to compare with: those of the store's embedder, or while they are being made of the one before, whichever lacks less.

    Raises InvalidError when no embedder of the store can be made here.
    """
    core, names = view._core, embedders(view)
    refused, found = None, list[Meanings]()

    def drop() -> None:
        for name in names[1:]:
            if name in core.meanings:
                core.meanings.pop(name).remove()

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


def _meanings(view: Reader, name: str, made: Callable[[str], Embedder]) -> Meanings:
    """The vectors of an embedder by its name, or of the one that was lent."""
    kept: dict[str, Meanings] = view._core.meanings
    if name not in kept:
        embed = view._core.vectors.lent if name == _LENT else None
        return kept.setdefault(name, Meanings(view, embed or made(name)))
    return kept[name]


class Question:
    """What a text means to an embedder, compared with all that has a vector. Make it before the store's lock is taken: the embedder may take its time."""

    def __init__(self, meanings: Meanings | None, text: str, failed: str = "there is no embedder") -> None:
        self._meanings, self._failed = meanings, failed
        self._compared: Compared | None = None
        self._total = self._lacking = 0
        if meanings is None:
            return
        try:
            vector = meanings.vectors([text])[0]
            meanings.fill_few()
            self._compared = meanings.compared(vector)
        except GraphStoreError:
            raise
        except Exception as error:
            self._failed = f"the embedder {meanings.model!r} failed ({brief(error)})"

    @property
    def note(self) -> str:
        """How it was searched, and what could not be compared."""
        if self._meanings is None or self._compared is None:
            return f"full-text only: {self._failed}"
        note = f"full-text and vectors of {self._meanings.model!r}"
        if self._lacking:
            have = "has" if self._lacking == 1 else "have"
            note += f"; {self._lacking:,} of {self._total:,} {have} no vector of it yet: found by words alone"
        return note

    def seen(self, sight: Sight) -> None:
        """Everything."""

    def nearest(
        self,
        sight: Sight,
        most: int,
        fits: Callable[[int], bool] | None = None,
        kind: str | None = None,
        wanted: Callable[[str], bool] | None = None,
        thread: str | None = None,
    ) -> Mapping[int, float]:
        """What is nearest in meaning, as `Meanings.nearest` says."""
        if self._meanings is None or self._compared is None:
            return {}
        found = self._meanings.nearest(sight, most, self._compared, fits, kind, wanted, thread)
        self._total, self._lacking = found.total, found.lacking
        return found.near
