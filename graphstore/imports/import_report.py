"""What an import reports: one model for every format, to which each adds its own counts, and what is noted for it meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from graphstore.values.models import Value


class Damage(Value):
    """A record that was left out: where it is and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ImportReport(Value):
    """What an import wrote and what it left out."""

    damaged: tuple[Damage, ...] = ()
    warnings: tuple[str, ...] = ()

    _counted: ClassVar[dict[str, str]] = {"damaged": "damaged"}
    """Fields printed where they are not zero, and the words after the number."""

    def _headline(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        found = ((getattr(self, name), words) for name, words in self._counted.items())
        counts = ((len(value) if isinstance(value, tuple) else value, words) for value, words in found)
        return "; ".join([self._headline(), *(f"{count} {words}" for count, words in counts if count)])


class Importing:
    """An import that goes on: what it has counted, left out and remarked on."""

    def __init__(self, file: str | Path, *counts: str) -> None:
        self.file = str(file)
        self.counts = dict.fromkeys(counts, 0)
        self.damaged: list[Damage] = []
        self.warnings: list[str] = []

    def leave(self, line: int, reason: str, file: str | Path | None = None) -> None:
        """Note a record that is left out; `file`: where it is, if not in the file that is imported."""
        self.damaged.append(Damage(file=str(file or self.file), line=line, reason=reason))

    def warn(self, line: int, words: str) -> None:
        """Note what a record of the file makes noteworthy."""
        self.warnings.append(f"{self.file}:{line}: {words}")

    def noted(self) -> dict[str, Any]:
        """Return the fields of the report."""
        return {**self.counts, "damaged": tuple(self.damaged), "warnings": tuple(self.warnings)}
