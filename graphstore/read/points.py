"""Runs statements at a coordinate of a ledger, and parses the contents that they return."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import orjson

from graphstore.ledger.damage import damaged_content
from graphstore.ledger.database import RowReader
from graphstore.ledger.statements import Statement
from graphstore.values.models import Json
from graphstore.values.period import Instant
from graphstore.values.vocabulary import Vocabulary

Row = TypeVar("Row")
_MISSING = -1  # in place of the checksum of a body that is missing but should exist


class NotInRows(Exception):
    """Raised if the rows lack something that the answer needs, such as a body that was forgotten meanwhile. The caller reads them again."""


class UndoneTransaction(NamedTuple):
    """A transaction that was undone, and the transaction and operation that undid it."""

    tx: Instant
    undone_at: Instant
    operation: int


UNDONE = Statement("undone", UndoneTransaction)
_BUILT_IN = Vocabulary()


class Point:
    """The coordinate (valid, tx) of one ledger, with the kinds of link that its store has (None: the built-in ones)."""

    def __init__(
        self, database: RowReader, valid: Instant, tx: Instant, vocabulary: Vocabulary | None = None
    ) -> None:
        self.database = database
        self.vocabulary = _BUILT_IN if vocabulary is None else vocabulary
        self.valid = valid
        self.tx = tx

    def rows(self, statement: Statement[Row], **values: Any) -> list[Row]:
        """Return the rows of a statement at this coordinate; [] if a value has a lone surrogate, which is never stored."""
        values["valid"], values["tx"] = self.valid, self.tx
        try:
            return statement.rows(self.database, values)
        except UnicodeEncodeError:
            return []

    @cached_property
    def whole(self) -> Point:
        """Return the point that also reads outside of scopes; itself if nothing is hidden."""
        whole = self.database.whole
        return self if whole is self.database else Point(whole, self.valid, self.tx, self.vocabulary)

    def content(self, data: bytes | None, checksum: int | None, what: str) -> Json:
        """Return a parsed body; {} if it never existed or was removed. Raises DamageError, which names `what` the body belongs to, if it is damaged."""
        if data is None and checksum != _MISSING:
            return {}
        if data is None or crc32(data) != checksum:
            raise damaged_content(self.database, data, checksum, what)
        found: Json = orjson.loads(data)
        return found

    @cached_property
    def any_undone(self) -> bool:
        """Return True if any transaction was ever undone, at any time."""
        return bool(self._undone)

    @cached_property
    def undone(self) -> str:
        """Return the tx of the transactions that are undone as known here, as a JSON array. An undone undo does not count."""
        taken_back: set[Instant] = set()
        for row in reversed(self._undone):  # only a later undo can undo an undo
            if row.undone_at <= self.tx and row.undone_at not in taken_back:
                taken_back.add(row.tx)
        return as_json(sorted(taken_back))

    @cached_property
    def _undone(self) -> list[UndoneTransaction]:
        return UNDONE.rows(self.database, {})


def as_json(values: list[Any] | dict[str, str]) -> str:
    """Encode several values as one parameter of a statement."""
    try:
        return orjson.dumps(values).decode()
    except TypeError:  # a lone surrogate
        return json.dumps(values)
