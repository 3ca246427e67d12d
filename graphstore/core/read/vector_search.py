"""What chunks mean, as vectors: kept for every version of each, and compared exactly over what stands at any coordinate.

A text has one vector, in whatever version it occurs. So the past is searched like the present: versions that do not stand at the coordinate are left
out first, and then what is left is ranked. numpy does the work, and is imported when there is an embedder.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graphstore.core.folder import vector_file as disk
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.read.sight import Sight
from graphstore.core.read.view import Reader
from graphstore.errors import InvalidError
from graphstore.values.sameness import statement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

BATCH = 64
"""The number of texts given to an embedder at once, unless it has a `batch` of its own."""
_TEXT = slice(16, 32)  # the part of a row's key that identifies the text


class Embedder(Protocol):
    """Turns a list of n texts into an array (n, d) of numbers. It may have a `model`, a `dimension` d, and a `batch`: how many texts it takes at once."""

    def __call__(self, texts: list[str], /) -> Any:
        """The vectors of the texts, in their order."""


def model_of(embed: Embedder) -> str:
    """The name of an embedder's model; of one that has none, where it is from."""
    kind = embed if hasattr(embed, "__qualname__") else type(embed)
    return str(getattr(embed, "model", None) or f"{kind.__module__}:{kind.__qualname__}")


class Shelf:
    """The vectors of one model: a matrix in memory, and the file beside the journal that it comes from. Use it with the store's lock held."""

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

    def clear(self) -> None:
        """Let go of everything."""
        self.row, self.of_text, self.matrix = {}, {}, None
        self._header, self._seen = None, (0, 0)

    def keep_only(self, keys: Iterable[bytes]) -> None:
        """Let go of all but these in memory."""
        kept = [self.row_of(key, self.row[key]) for key in keys if key in self.row]
        self.row, self.of_text, self.matrix = {}, {}, None
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

    def remove_others(self) -> list[Path]:
        """Remove the files of other models. Gives them."""
        if self._path is None or self._notify is None:
            return []
        others = [path for path in disk.files(self._path.parent) if path != self._path]
        disk.remove(others)
        return others

    def row_of(self, key: bytes, at: int) -> disk.Row:
        """A row as the file has it."""
        import numpy as np

        assert self.matrix is not None
        return disk.Row(key, self.matrix[at].astype(np.dtype("<f4")).tobytes())


class Meanings:
    """The vectors of the chunks of one store. It follows the store's index on each read, and embeds nothing while it holds the lock."""

    def __init__(
        self,
        store: Reader,
        folder: Path | None,
        kind: str,
        embed: Embedder,
        notify: Callable[[str], None] | None,
    ) -> None:
        if not callable(embed):
            raise InvalidError(
                f"embedder {embed!r} cannot be called. Give a function of a list of texts, such as embedders.wordllama()."
            )
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise InvalidError("vectors need numpy. Install it: pip install 'graphstore[vectors]'") from None
        self._core, self._kind, self._embed = store._core, kind, embed
        self.model = model_of(embed)
        self.batch: int = getattr(embed, "batch", None) or BATCH
        self._shelf = Shelf(folder, self.model, getattr(embed, "dimension", None), notify)
        self._given_dimension: int | None = None  # the dimension that the embedder gave
        self._spare: dict[bytes, bytes] = {}  # of texts that are not committed yet
        self._index: Index | None = None
        self._gone = 0
        self._begin()

    def _begin(self) -> None:
        # by version of a chunk, in their order: the version, its row's key, that row (-1: none yet), its scope and its thread
        self._done = 0
        self._vers, self._rows = array("q"), array("q")
        self._keys: list[bytes] = []
        self._scopes, self._threads = array("q"), array("q")
        self._scope_of: dict[str, int] = {}
        self._thread_of: dict[str | None, int] = {None: 0}
        self._lacking: dict[bytes, list[int]] = {}  # texts without a vector -> their versions
        self._fresh: set[bytes] = set()  # those of them not looked for yet
        self._columns: tuple[Any, ...] | None = None

    # ------------------------------------------------------------------ following

    def settle(self) -> None:
        """Follow what was committed, and give each version the vector of its text where there is one. Takes the store's lock, and embeds nothing."""
        with self._core.lock, no_collecting():
            shelf, before = self._shelf, len(self._shelf.row)
            shelf.refresh()
            self._follow()
            texts = self._fresh.union(self._spare)
            if len(shelf.row) != before:
                texts.update(self._lacking)
            known, rows = len(shelf.row), self._rows_for(texts)
            shelf.add(rows)
            for text in texts & self._lacking.keys():
                self._give(text)
            if rows:
                shelf.keep(rows, lambda: self._known(known))
            self._fresh.clear()
            if not self._core.index.pending:
                self._spare.clear()

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
        if left:
            self._lacking[text] = left
        else:
            del self._lacking[text]

    def _known(self, upto: int) -> list[disk.Row]:
        """The rows in memory for recorded texts, among the first rows."""
        rows = self._shelf.row
        there = {key: rows[key] for key in self._keys if rows.get(key, upto) < upto}
        return [self._shelf.row_of(key, row) for key, row in there.items()]

    def _follow(self) -> None:
        index = self._core.index
        if index is not self._index or len(index.gone) < self._gone:
            self._begin()
            self._index = index
        elif len(index.gone) > self._gone:
            self._let_go(index)
        self._gone = len(index.gone)
        goal = index.mark().versions
        for ver in range(self._done, goal):
            self._note(index, ver)
        if self._done < goal:
            self._done, self._columns = goal, None

    def _note(self, index: Index, ver: int) -> None:
        ent = index.v_ent[ver]
        if index.kind[ent] != self._kind or index.is_event[ent] or ent in index.gone:
            return
        body = self._core.body(index.v_pos[ver], index.v_len[ver])
        content = body.get("content", {})
        key = disk.key_of(index.names[ent], statement(content, body.get("text")))
        row, thread = self._shelf.row.get(key, -1), content.get("thread")
        if row < 0:
            self._lacking.setdefault(key[_TEXT], []).append(len(self._vers))
            self._fresh.add(key[_TEXT])
        self._vers.append(ver)
        self._keys.append(key)
        self._rows.append(row)
        self._scopes.append(self._scope_of.setdefault(index.scope[ent], len(self._scope_of)))
        name = thread if isinstance(thread, str) else None
        self._threads.append(self._thread_of.setdefault(name, len(self._thread_of)))

    def _let_go(self, index: Index) -> None:
        """Of what was forgotten since. In the file it is blanked already."""
        kept = (self._keys[at] for at, ver in enumerate(self._vers) if index.v_ent[ver] not in index.gone)
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
        with self._core.lock:
            if self._shelf.dimension not in (None, dimension):
                self._shelf.clear()
                self._begin()
            self._shelf.dimension = dimension

    def lacking(self) -> int:
        """How many versions of chunks have no vector yet."""
        with self._core.lock:
            self.settle()
            return sum(map(len, self._lacking.values()))

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

    def _texts(self) -> list[str]:
        """The texts of the next batch that has no vectors."""
        with self._core.lock:
            self._follow()
            index, found = self._core.index, list[str]()
            for places in islice(self._lacking.values(), self.batch):
                ver = self._vers[places[0]]
                body = self._core.body(index.v_pos[ver], index.v_len[ver])
                found.append(statement(body.get("content", {}), body.get("text")))
        return found

    def remove_others(self) -> list[Path]:
        """Remove the vectors of other models: every text has one of this."""
        with self._core.lock:
            return self._shelf.remove_others()

    # ------------------------------------------------------------------ comparing

    def nearest(
        self,
        sight: Sight,
        most: int,
        query: Matrix | None,
        wanted: Callable[[str], bool] | None,
        thread: str | None,
    ) -> tuple[Mapping[int, float], int]:
        """The `most` entities nearest to the query, by cosine, among the chunks that stand here (in these scopes, in this thread or none), then by id;
        and how many that stand here have no vector.
        """
        import numpy as np

        self.settle()
        vers, rows, scopes, threads = self._arrays()
        alive = np.frombuffer(sight.core.search.standing(sight).alive, dtype=np.uint8)[vers]
        mask = alive.astype(bool)
        if wanted is not None:
            mask &= np.fromiter(map(wanted, self._scope_of), dtype=bool, count=len(self._scope_of))[scopes]
        if thread is not None:
            mask &= (threads == 0) | (threads == self._thread_of.get(thread, -1))
        lacking = int(np.count_nonzero(mask & (rows < 0)))
        there = np.flatnonzero(mask & (rows >= 0))
        matrix = self._shelf.matrix
        if matrix is None or query is None or not len(there):
            return {}, lacking
        count = len(self._shelf.row)
        if 4 * len(there) > count:
            scores = (matrix[:count] @ query)[rows[there]]
        else:
            scores = matrix[rows[there]] @ query
        if len(there) > most:
            least = np.partition(scores, len(scores) - most)[len(scores) - most]
            best = np.flatnonzero(scores >= least)
            there, scores = there[best], scores[best]
        v_ent, names = sight.index.v_ent, sight.index.names
        found = [
            (v_ent[ver], score) for ver, score in zip(vers[there].tolist(), scores.tolist(), strict=True)
        ]
        found.sort(key=lambda match: (-match[1], names[match[0]]))
        return dict(found[:most]), lacking

    def _arrays(self) -> tuple[Any, ...]:
        import numpy as np

        if self._columns is None:
            self._columns = tuple(
                np.array(column, dtype=np.int64)
                for column in (self._vers, self._rows, self._scopes, self._threads)
            )
        return self._columns
