"""Reads the lines of a store that release 0.1 kept in PostgreSQL, so that they can be copied into a folder.

The table `graphstore.journal` has the head of each line, and `graphstore.body` its bodies, by the number of the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import orjson

from graphstore.errors import DamageError, EngineError, InvalidError, NotFoundError
from graphstore.ledger.chain import FORGOTTEN

_PAGE = 256  # lines read per statement
_OURS = ("store", "cache")  # our parameters of an address; the others belong to libpq
_LINES = """
SELECT j.seq, j.digest, j.head, b.ns, b.bodies FROM graphstore.journal j
LEFT JOIN LATERAL (
  SELECT array_agg(n) ns, array_agg(bytes) bodies FROM graphstore.body b WHERE b.store = j.store AND b.seq = j.seq
) b ON true
WHERE j.store = %s AND j.seq > %s ORDER BY j.seq LIMIT %s
"""
_DIGEST = "SELECT digest FROM graphstore.journal WHERE store = %s AND seq = %s"
_THERE = "SELECT to_regclass('graphstore.body') IS NOT NULL"
_ANY = "SELECT FROM graphstore.store WHERE name = %s"


class Address(NamedTuple):
    """The location of a store: the connection string for libpq, the name of the store, and the address to show to users."""

    conninfo: str
    store: str
    shown: str


def is_postgres(path: object) -> bool:
    """Return True for the address of a store in PostgreSQL."""
    return isinstance(path, str) and path[:13].lower().startswith(("postgresql://", "postgres://"))


def address(url: str) -> Address:
    """Parse an address. Raises InvalidError if it is not one or lacks the name of the store."""
    try:
        url.encode()
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, errors="strict")
    except ValueError:  # the error's message may contain the password
        raise InvalidError(
            "that is no address of a store in PostgreSQL. One is postgresql://host/database?store=team"
        ) from None
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))  # no password
    store = dict(given).get("store")
    if not store:
        raise InvalidError(
            f"{shown} names no store. Say which of this database: postgresql://host/database?store=team"
        )
    left = urlencode([(name, value) for name, value in given if name not in _OURS], quote_via=quote)
    conninfo = urlunsplit((parts.scheme, parts.netloc, parts.path, left, ""))
    return Address(conninfo, store, f"{shown}?store={quote(store)}")


class PostgresLines:
    """The lines of one store in PostgreSQL."""

    def __init__(self, where: Address) -> None:
        """Connect. Raises EngineError if the server refuses, NotFoundError if there is no such store."""
        try:
            import psycopg
        except ImportError as error:
            raise InvalidError(
                f"a store in PostgreSQL needs {error.name or 'libpq for psycopg'}. Install it: pip install 'graphstore[postgres]'"
            ) from None
        self.where, self.shown, self._error = where, where.shown, psycopg.Error
        try:
            self._connection = psycopg.connect(where.conninfo, autocommit=True, connect_timeout=10)
        except psycopg.ProgrammingError as error:
            raise InvalidError(f"{where.shown} is no address of libpq. Correct it.") from error
        except psycopg.Error as error:
            raise EngineError(f"{where.shown} cannot be opened: {str(error).strip()}") from error
        if not self._rows(_THERE)[0][0] or not self._rows(_ANY, (where.store,)):
            self.close()
            raise NotFoundError(f"no store {where.store!r} at {where.shown}.")

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            with self._connection.cursor(binary=True) as cursor:
                return cursor.execute(statement, values).fetchall()
        except self._error as error:
            raise EngineError(f"{self.where.shown} refused: {str(error).strip()}") from error

    def place(self, number: int, digest: str) -> int | None:
        """Return the number of a line if it has this digest, else None; always 0 for 0, the number before the first."""
        is_there = not number or self._rows(_DIGEST, (self.where.store, number)) == [(digest,)]
        return number if is_there else None

    def lines(self, after: int) -> Iterator[list[bytes]]:
        """Yield pages of the lines after one, each in the format of release 0.1. Raises DamageError if a line is missing."""
        while found := self._rows(_LINES, (self.where.store, after, _PAGE)):
            page = []
            for at, (seq, digest, head, ns, bodies) in enumerate(found, after + 1):
                if seq != at:
                    raise DamageError(f"{self.where.shown} line {at}: it is missing. Restore a backup there.")
                page.append(_line(head, digest, dict(zip(ns or (), bodies or (), strict=True))))
            yield page
            after += len(found)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _line(head: bytes, digest: str, known: dict[int, bytes]) -> bytes:
    """Return the line of a head; a missing body was forgotten."""
    bodies = [known.get(number, FORGOTTEN) for number in range(len(orjson.loads(head)["body"]))]
    return b'{"body":[%b],"digest":"%b","head":%b}\n' % (b",".join(bodies), digest.encode(), head)
