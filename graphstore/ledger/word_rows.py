"""Writes the words of texts as rows of the ledger: one row of `fresh` per version. Full blocks of the trunk's versions are sealed into segments.

The segments depend only on the number of versions of the trunk, so rows rebuilt from the chain equal those written one by one.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.values import searched_text
from graphstore.values.models import Json

if TYPE_CHECKING:
    from graphstore.values.words import Analyzer

    Numbers = array[int]

WORD_TABLES = ("analyzer", "fresh", "segment", "posting")
LANGUAGES = "languages"
"""The setting with the languages whose words are stemmed."""
SEALED = 1_024
"""Number of versions sealed into one segment."""
MERGED = 16 * SEALED
"""Number of versions in a merged segment."""
WIDTH = 4
"""Bytes per version number."""
_BATCH = 4_096  # texts read per statement
_STATE = f"""
SELECT (SELECT identity FROM analyzer), (SELECT value FROM setting WHERE name = '{LANGUAGES}' ORDER BY number DESC LIMIT 1)
"""
_TEXTS = """
SELECT v.number, e.is_event, e.kind, e.key, b.data, EXISTS (SELECT 1 FROM all_forgotten f WHERE f.entity = e.number)
FROM all_version v
CROSS JOIN all_entity e ON e.number = v.entity
LEFT JOIN body b ON b.number = v.body
WHERE v.number >= ?
ORDER BY v.number
LIMIT ?
"""
_FEW = 8  # versions whose postings are searched one by one; for more, all postings of the segment are read
_VERSIONS = "SELECT number FROM all_version WHERE entity = ?"
_SEGMENT_OF = "SELECT first FROM segment WHERE first <= ? ORDER BY first DESC LIMIT 1"
_POSTINGS = "SELECT term, versions, times FROM posting WHERE segment = ?"
_NAMING = f"{_POSTINGS} AND instr(versions, ?)"


Columns = tuple[bytes, bytes]


class Text(NamedTuple):
    """A version, properties of the thing that it describes, and its body; None if that was forgotten."""

    version: int
    is_event: bool
    kind: str
    key: str | None
    body: Json | None


class WordRows:
    """Writes the words of one ledger. Only the thread that has the turn to write uses it."""

    def __init__(self) -> None:
        self._analyzer: Analyzer | None = None
        self._setting: str | None = None  # the languages of the analyzer
        self._may_be_full = False  # True if an unsealed block may be full

    def add(self, connection: sqlite3.Connection, texts: list[Text]) -> None:
        """Write the words of new versions of a line, given in order."""
        identity, languages = connection.execute(_STATE).fetchone()
        analyzer = self._made_for(languages)
        if identity != analyzer.identity:
            self._write_again(connection, analyzer)
            return
        connection.executemany("INSERT INTO fresh VALUES (?, ?)", _fresh(texts, analyzer))
        self._may_be_full = (
            self._may_be_full or texts[0].version // SEALED < (texts[-1].version + 1) // SEALED
        )

    def _write_again(self, connection: sqlite3.Connection, analyzer: Analyzer) -> None:
        """Write the words of all versions again, and record the analyzer that made them."""
        for table in WORD_TABLES:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("INSERT INTO analyzer VALUES (?)", (analyzer.identity,))
        first = 0
        while rows := connection.execute(_TEXTS, (first, _BATCH)).fetchall():
            texts = [
                Text(version, is_event, kind, key, None if is_forgotten else orjson.loads(data or b"{}"))
                for version, is_event, kind, key, data, is_forgotten in rows
            ]
            connection.executemany("INSERT INTO fresh VALUES (?, ?)", _fresh(texts, analyzer))
            first = rows[-1][0] + 1
        self._may_be_full = True

    def seal(self, connection: sqlite3.Connection) -> None:
        """Seal the full blocks. Called at the end of each transaction."""
        if not self._may_be_full:
            return
        self._may_be_full = False
        begun, stop = connection.execute(
            "SELECT (SELECT version FROM fresh ORDER BY version LIMIT 1), (SELECT version FROM next_number)"
        ).fetchone()
        while begun is not None and begun + SEALED <= stop:
            end = begun + (MERGED if begun % MERGED == 0 and begun + MERGED <= stop else SEALED)
            texts = connection.execute(
                "SELECT version, terms FROM fresh WHERE version < ? ORDER BY version", (end,)
            ).fetchall()
            connection.execute("DELETE FROM fresh WHERE version < ?", (end,))
            _write_segment(connection, begun, end, *_sealed(texts))
            if end % MERGED == 0 and end - begun < MERGED:
                _merge(connection, end - MERGED, end)
            begun = end

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Write the words of all versions again if the languages or the stemmer have changed."""
        identity, languages = connection.execute(_STATE).fetchone()
        analyzer = self._made_for(languages)
        if identity != analyzer.identity:
            self._write_again(connection, analyzer)

    def drop(self, connection: sqlite3.Connection, entities: Iterable[int]) -> None:
        """Remove the words of forgotten entities."""
        sealed: dict[int, list[int]] = {}
        for entity in entities:
            for (version,) in connection.execute(_VERSIONS, (entity,)).fetchall():
                if connection.execute("UPDATE fresh SET terms = x'' WHERE version = ?", (version,)).rowcount:
                    continue
                found = connection.execute(_SEGMENT_OF, (version,)).fetchone()
                if found is not None:  # otherwise its words were never written
                    sealed.setdefault(found[0], []).append(version)
        for segment, versions in sealed.items():
            _drop_sealed(connection, segment, versions)

    def _made_for(self, setting: str | None) -> Analyzer:
        """Return the analyzer for a setting of languages, a JSON array."""
        if self._analyzer is None or setting != self._setting:
            from graphstore.values.words import ENGLISH, Analyzer  # most processes only read

            self._analyzer = Analyzer(tuple(orjson.loads(setting) or ENGLISH) if setting else ENGLISH)
            self._setting = setting
        return self._analyzer


def _fresh(texts: Iterable[Text], analyzer: Analyzer) -> Iterator[tuple[int, bytes]]:
    """Yield the words of versions. A forgotten version has no body and no words."""
    for version, is_event, kind, key, body in texts:
        if body is None:
            yield version, b""
            continue
        text = searched_text.text_of_event(body) if is_event else searched_text.text_of_node(body, kind, key)
        yield version, "\n".join(analyzer.terms(text)).encode("utf-8", "surrogatepass")


def terms_of(joined: bytes) -> list[bytes]:
    """Return the terms of a row of `fresh`."""
    return joined.split(b"\n") if joined else []


def _sealed(texts: Iterable[tuple[int, bytes]]) -> tuple[Numbers, dict[bytes, Columns]]:
    """Return the lengths of texts in terms, and the columns of each term."""
    lengths, found = array("I"), dict[bytes, tuple[list[int], list[int]]]()
    for version, joined in texts:
        terms = terms_of(joined)
        lengths.append(len(terms))
        for term, times in Counter(terms).items():
            columns = found.get(term)
            if columns is None:
                found[term] = [version], [times]
            else:
                columns[0].append(version)
                columns[1].append(times)
    return lengths, {term: _columns(*found[term]) for term in sorted(found)}


def _write_segment(
    connection: sqlite3.Connection, first: int, end: int, lengths: Numbers, postings: dict[bytes, Columns]
) -> None:
    """Write a segment. `postings`: the columns of its terms, in the order of terms."""
    connection.execute("INSERT INTO segment VALUES (?, ?, ?)", (first, end - 1, _packed(lengths)))
    connection.executemany(
        "INSERT INTO posting VALUES (?, ?, ?, ?)",
        ((first, term, versions, times) for term, (versions, times) in postings.items()),
    )


def _merge(connection: sqlite3.Connection, first: int, end: int) -> None:
    """Merge consecutive segments into one."""
    lengths, parts = array("I"), dict[bytes, tuple[list[bytes], list[bytes]]]()
    between = (first, end - 1)
    for (blob,) in connection.execute(
        "SELECT lengths FROM segment WHERE first BETWEEN ? AND ? ORDER BY first", between
    ).fetchall():
        lengths.extend(_unpacked(blob))
    for term, versions, times in connection.execute(
        "SELECT term, versions, times FROM posting WHERE segment BETWEEN ? AND ? ORDER BY segment", between
    ).fetchall():
        found = parts.setdefault(term, ([], []))
        found[0].append(versions)
        found[1].append(times)
    connection.execute("DELETE FROM segment WHERE first BETWEEN ? AND ?", between)
    connection.execute("DELETE FROM posting WHERE segment BETWEEN ? AND ?", between)
    postings = {term: _joined(*parts[term]) for term in sorted(parts)}
    _write_segment(connection, first, end, lengths, postings)


def _joined(versions: list[bytes], times: list[bytes]) -> Columns:
    """Return the columns of a term, joined from consecutive segments."""
    whole, often = b"".join(versions), b"".join(times)
    if len(often) * WIDTH == len(whole):
        return whole, often
    return _columns(
        _unpacked(whole), [time for part in zip(versions, times, strict=True) for time in _times(*part)]
    )


def _drop_sealed(connection: sqlite3.Connection, segment: int, versions: list[int]) -> None:
    """Remove versions from the postings of their segment."""
    [(blob,)] = connection.execute("SELECT lengths FROM segment WHERE first = ?", (segment,)).fetchall()
    lengths = _unpacked(blob)
    gone = {version for version in versions if version - segment < len(lengths)}
    if not gone:
        return
    for version in gone:
        lengths[version - segment] = 0
    connection.execute("UPDATE segment SET lengths = ? WHERE first = ?", (_packed(lengths), segment))
    for term, numbers, times in _postings_of(connection, segment, gone):
        left = [
            (version, count)
            for version, count in zip(_unpacked(numbers), _times(numbers, times), strict=True)
            if version not in gone
        ]
        if not left:
            connection.execute("DELETE FROM posting WHERE segment = ? AND term = ?", (segment, term))
        elif len(left) * WIDTH < len(numbers):
            columns = _columns([version for version, _ in left], [count for _, count in left])
            connection.execute(
                "UPDATE posting SET versions = ?, times = ? WHERE segment = ? AND term = ?",
                (*columns, segment, term),
            )


def _postings_of(connection: sqlite3.Connection, segment: int, versions: set[int]) -> list[Any]:
    """Return postings of a segment, at least those that contain the versions."""
    if len(versions) > _FEW:
        return connection.execute(_POSTINGS, (segment,)).fetchall()
    found: dict[bytes, Any] = {}
    for version in versions:
        rows = connection.execute(_NAMING, (segment, _packed(array("I", (version,))))).fetchall()
        found.update((row[0], row) for row in rows)
    return list(found.values())


def _columns(versions: Iterable[int], times: list[int]) -> Columns:
    """Return the columns of a term: its versions, and its frequency in each."""
    often = bytes(times) if max(times) < 256 else _packed(array("I", times))
    return _packed(array("I", versions)), often


def _times(versions: bytes, times: bytes) -> list[int]:
    """Return the frequency of a term in each of its versions."""
    return list(times) if len(times) * WIDTH == len(versions) else _unpacked(times).tolist()


def _packed(numbers: Numbers) -> bytes:
    return (numbers if sys.byteorder == "little" else _swapped(numbers)).tobytes()


def _unpacked(blob: bytes) -> Numbers:
    """Return the 4-byte numbers of a blob."""
    numbers = array("I", blob)
    return numbers if sys.byteorder == "little" else _swapped(numbers)


def _swapped(numbers: Numbers) -> Numbers:
    numbers = numbers[:]
    numbers.byteswap()
    return numbers
