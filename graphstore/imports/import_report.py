"""What an import reports: one model for every format, to which each adds its own counts."""

from __future__ import annotations

from typing import ClassVar

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
