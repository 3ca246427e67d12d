"""Defines the report of an import, the same for every format, and what collects its counts and omissions while the import runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from graphstore.values.models import Value

if TYPE_CHECKING:
    from graphstore.store.store import Store

EXAMPLES = 3
"""The number of records that a reason names."""
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""The parts that differ between records left out for the same reason."""


class Damage(Value):
    """A record that was left out: where it is and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ReasonLeftOut(NamedTuple):
    """Counts the records left out for one reason, with the first as examples."""

    times: int
    examples: tuple[str, ...]


class ImportTotals(NamedTuple):
    """Counts what an import read, wrote, found unchanged, and left out by reason. In a reason, names and numbers are replaced by `…`."""

    read: int
    written: int
    unchanged: int
    left_out: dict[str, ReasonLeftOut]

    @property
    def is_refused(self) -> bool:
        """Return True if something was left out and nothing was taken: then a command ends with exit code 1."""
        return bool(self.left_out) and not (self.written or self.unchanged)


class CountedImport(Value):
    """The base of the reports of all imports."""

    _read: ClassVar[str] = ""
    """The field that counts what was read. Without one, that is the sum of what was written, unchanged and left out."""
    _written: ClassVar[tuple[str, ...]]
    """The fields that count what was written."""
    _unchanged: ClassVar[str] = ""
    """The field that counts what already existed."""

    def totals(self) -> ImportTotals:
        """Return the counts that every import has."""
        left_out: dict[str, ReasonLeftOut] = {}
        for reason, example in self._left_out():
            plain = _DETAIL.sub("…", reason)
            times, examples = left_out.get(plain, (0, ()))
            left_out[plain] = ReasonLeftOut(times + 1, (*examples, example)[:EXAMPLES])
        written = sum(getattr(self, name) for name in self._written)
        unchanged = getattr(self, self._unchanged) if self._unchanged else 0
        read = written + unchanged + sum(each.times for each in left_out.values())
        return ImportTotals(getattr(self, self._read) if self._read else read, written, unchanged, left_out)

    def _left_out(self) -> list[tuple[str, str]]:
        """Return the reason for each record that was left out, and words that name the record."""
        raise NotImplementedError


class ImportReport(CountedImport):
    """What an import of a file wrote and what it left out."""

    damaged: tuple[Damage, ...] = ()
    warnings: tuple[str, ...] = ()

    _counted: ClassVar[dict[str, str]] = {"damaged": "damaged"}
    """Fields printed if they are not zero, and the words after the number."""

    def _headline(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        found = ((getattr(self, name), words) for name, words in self._counted.items())
        counts = ((len(value) if isinstance(value, tuple) else value, words) for value, words in found)
        return "; ".join([self._headline(), *(f"{count} {words}" for count, words in counts if count)])

    def _left_out(self) -> list[tuple[str, str]]:
        return [(each.reason, str(each)) for each in self.damaged]


R = TypeVar("R", bound=ImportReport)


class Importing(Generic[R]):
    """An import in progress: the store it writes to, its counts, the records left out, and its warnings."""

    def __init__(self, store: Store, file: str | Path, model: type[R]) -> None:
        self.store = store
        self.file = str(file)
        self.counts: Counter[str] = Counter()
        """By the fields of the report."""
        self.damaged: list[Damage] = []
        self.warnings: list[str] = []
        self._model = model

    def leave(self, line: int, reason: str, file: str | Path | None = None) -> None:
        """Note a record that is left out. `file`: its file, if not the imported one."""
        self.damaged.append(Damage(file=str(file or self.file), line=line, reason=reason))

    def warn(self, line: int, words: str) -> None:
        """Add a warning about a record of the file."""
        self.warnings.append(f"{self.file}:{line}: {words}")

    def report(self, **more: Any) -> R:
        """Return the report of what was counted and noted. `more`: further fields of the report."""
        counted = {
            name: self.counts[name]
            for name, field in self._model.model_fields.items()
            if field.annotation is int
        }
        left_out = sorted(self.damaged, key=lambda each: (each.file, each.line))
        return self._model(**{**counted, **more}, damaged=tuple(left_out), warnings=tuple(self.warnings))
