"""The saved copy of the resident index, so that a clean open need not read the journal line by line. Disposable: in any doubt it is not used."""

from __future__ import annotations

import contextlib
import sys
from array import array
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from graphstore.core.index.columns import UNDO
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.journal.branch_records import BranchRecords
from graphstore.core.journal.files import open_new, plain_bytes, write_all
from graphstore.core.journal.line import SCHEMA
from graphstore.core.journal.positions import Position
from graphstore.values.period import instant

_MAGIC = b"graphstore index 9\n"
_NUMBERS = (
    "born", "changed", "v_ent", "v_num", "v_pos", "v_len", "v_op", "r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close",
    "closings", "l_src", "l_tgt", "c_link", "c_num", "c_strength", "c_inferred", "c_pos", "c_len", "c_op", "k_link", "k_claim", "k_from",
    "k_to", "k_tx", "k_end", "k_op", "k_close", "link_closings", "o_tx", "o_pos", "o_len",
    "s_ent", "s_at", "s_tx", "s_op", "s_first", "s_last", "t_tx", "t_ver",
)  # fmt: skip
_CODED = ("kind", "scope", "l_kind", "c_by", "o_verb", "o_author")


_GAPS = ("gaps", "turns", "ghosts", "link_ghosts")
_GROUPS = ("versions_of", "rows_of", "now_of", "rows_of_link", "claims_of")


def write(path: Path, index: Index, position: Position, digest: str, journal_crc: int) -> None:
    """Write the copy, atomically."""
    header: dict[str, Any] = {
        "schema": SCHEMA, "byteorder": sys.byteorder, "position": list(position), "digest": digest, "journal_crc": journal_crc,
        "last_tx": index.last_tx, "transactions": index.transactions, "names": index.names, "key": index.key,
        "is_event": [ent for ent, event in enumerate(index.is_event) if event], "l_name": index.l_name,
        "taken": {str(link): pieces for link, pieces in index.taken.items()}, **{name: {str(one): gaps for one, gaps in getattr(index, name).items()} for name in _GAPS}, "turned": index.turned, "unread": sorted(index.unread), "fell": list(index.fell.items()), "tainted": list(index.tainted.items()), "kinds": index.kinds, "promoted": index.promoted,
        "strands": index.branch_records.saved(), "aliases": [[*alias, ver] for alias, ver in index.aliases.items()], "noted": index.noted, "retaken": index.retaken,
        "settings": index.settings, "gone": {str(ent): op for ent, op in index.gone.items()},
        "lengths": {name: len(getattr(index, name)) for name in _NUMBERS},
    }  # fmt: skip
    parts: list[bytes] = []
    for name in _CODED:
        table: dict[Any, int] = {}
        codes = array("q", (table.setdefault(value, len(table)) for value in getattr(index, name)))
        header[f"{name}_table"] = list(table)
        header["lengths"][name] = len(codes)
        parts.append(codes.tobytes())
    header["o_subject"], subjects = _subjects(index)
    header["lengths"]["o_subject"] = len(subjects)
    parts.append(subjects.tobytes())
    for name in _GROUPS:
        for part, numbers in zip(("lengths", "numbers"), _flat(getattr(index, name)), strict=True):
            header["lengths"][f"{name}_{part}"] = len(numbers)
            parts.append(numbers.tobytes())
    parts += [getattr(index, name).tobytes() for name in _NUMBERS]
    head = orjson.dumps(header)
    data = b"".join([_MAGIC, len(head).to_bytes(8, "little"), head, *parts])
    fresh = path.with_suffix(".new")
    with contextlib.suppress(OSError):  # without it the next open only takes longer
        try:
            with open_new(fresh) as file:
                write_all(file.fileno(), data)
                write_all(file.fileno(), crc32(data).to_bytes(4, "little"))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


class Copy:
    """A complete copy: its position in the journal, the digest there, the CRC of the journal before, and the index."""

    def __init__(self, header: dict[str, Any], columns: memoryview, changed: int) -> None:
        self.position = Position(*header["position"])
        self.digest: str = header["digest"]
        self.journal_crc: int = header["journal_crc"]
        self.changed = changed  # when the file was written
        self.transactions: int = header["transactions"]
        self.last_tx: int = header["last_tx"]
        self._header, self._columns = header, columns

    def index(self) -> Index:
        """The index as it was saved."""
        with no_collecting():
            return _load(self._header, self._columns)


def read(path: Path) -> Copy | None:
    """The copy at `path`, None when it is not whole or not for this program."""
    try:
        changed, data = path.stat().st_mtime_ns, plain_bytes(path)
    except OSError:
        return None
    body = memoryview(data)[:-4]
    if (
        not data.startswith(_MAGIC)
        or len(data) < len(_MAGIC) + 12
        or crc32(body) != int.from_bytes(data[-4:], "little")
    ):
        return None
    at = len(_MAGIC)
    size = int.from_bytes(data[at : at + 8], "little")
    try:
        header = orjson.loads(body[at + 8 : at + 8 + size])
    except orjson.JSONDecodeError:
        return None
    if header["schema"] != SCHEMA or header["byteorder"] != sys.byteorder:
        return None
    return Copy(header, body[at + 8 + size :], changed)


def _load(header: dict[str, Any], data: memoryview) -> Index:
    index, lengths, at = Index(), header["lengths"], 0

    def take(name: str) -> array[int]:
        nonlocal at
        numbers = array("q")
        numbers.frombytes(data[at : at + 8 * lengths[name]])
        at += 8 * lengths[name]
        return numbers

    for name in _CODED:
        table = header[f"{name}_table"]
        setattr(index, name, list(map(table.__getitem__, take(name))))
    subjects = take("o_subject")
    groups = {name: _deep(take(f"{name}_lengths"), take(f"{name}_numbers")) for name in _GROUPS}
    for name in _NUMBERS:
        setattr(index, name, take(name))
    index.last_tx, index.transactions = header["last_tx"], header["transactions"]
    index.names, index.key, index.l_name = header["names"], header["key"], header["l_name"]
    index.kinds, index.promoted = header["kinds"], header["promoted"]
    index.add_settings(header["settings"])
    index.branch_records = BranchRecords.loaded(header["strands"])
    index.aliases = {(branch, number, name): ver for branch, number, name, ver in header["aliases"]}
    index.noted = [tuple(noted) for noted in header["noted"]]
    index.retaken = [(tx, link, [tuple(piece) for piece in before]) for tx, link, before in header["retaken"]]
    index.gone = {int(ent): op for ent, op in header["gone"].items()}
    index.taken = {int(link): [tuple(piece) for piece in pieces] for link, pieces in header["taken"].items()}
    for name in _GAPS:
        setattr(index, name, {int(one): [tuple(gap) for gap in gaps] for one, gaps in header[name].items()})
    index.fell, index.tainted = dict(header["fell"]), dict(header["tainted"])
    index.unread, index.turned = set(header["unread"]), header["turned"]
    index.is_event = bytearray(len(index.names))
    for ent in header["is_event"]:
        index.is_event[ent] = 1
    known = [*index.names, *index.l_name, *header["o_subject"]]
    index.o_subject = list(map(known.__getitem__, subjects))
    _link_up(index, groups)
    if not {"confirm", UNDO}.isdisjoint(header["o_verb_table"]):
        for op, verb in enumerate(index.o_verb):
            if verb == "confirm":
                index.confirmed.setdefault(index.o_subject[op], []).append(op)
            elif verb == UNDO:
                index.undone_by.setdefault(instant(index.o_subject[op]), []).append(op)
    return index


def _subjects(index: Index) -> tuple[list[str], array[int]]:
    """The subjects of the operations as numbers: nearly all are names of things or links."""
    codes = {name: at for at, name in enumerate([*index.names, *index.l_name])}
    others: dict[str, int] = {}
    base = len(index.names) + len(index.l_name)
    numbers = array("q")
    for subject in index.o_subject:
        code = codes.get(subject)
        numbers.append(base + others.setdefault(subject, len(others)) if code is None else code)
    return list(others), numbers


def _link_up(index: Index, groups: dict[str, list[list[int]]]) -> None:
    """Build what follows from the columns: the dictionaries and lists that lead to rows."""
    count = len(index.names)
    index.ids = dict(zip(index.names, range(count), strict=True))
    index.versions_of = groups["versions_of"]
    index.rows_of = groups["rows_of"]
    index.now_of = groups["now_of"]
    for ent, key in enumerate(index.key):
        if key is not None:
            index.slots.setdefault((key, index.scope[ent]), []).append(ent)
    for row, ent in enumerate(index.s_ent):
        index.seen_of.setdefault(ent, []).append(row)
    index.link_ids = dict(zip(index.l_name, range(len(index.l_name)), strict=True))
    index.rows_of_link = groups["rows_of_link"]
    index.claims_of = groups["claims_of"]
    for link, (source, target) in enumerate(zip(index.l_src, index.l_tgt, strict=True)):
        index.out.setdefault(source, []).append(link)
        index.into.setdefault(target, []).append(link)
        index._note_link(link, source, index.l_kind[link], target)


def _flat(groups: list[list[int]]) -> tuple[array[int], array[int]]:
    """Lists of numbers as their lengths and all of them in a row."""
    return array("q", map(len, groups)), array("q", chain.from_iterable(groups))


def _deep(lengths: array[int], numbers: array[int]) -> list[list[int]]:
    flat = numbers.tolist()
    stops = list(accumulate(lengths, initial=0))
    return [flat[start:stop] for start, stop in pairwise(stops)]
