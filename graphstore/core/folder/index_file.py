"""The saved copy of the resident index, so that a clean open need not read the journal line by line. Disposable: in any doubt it is not used."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from array import array
from collections.abc import Sequence
from itertools import chain, compress, count, islice
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import orjson

from graphstore.core.index import shaky_spans
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.index.saved_parts import (
    Coded,
    Groups,
    Ids,
    Keyed,
    Lists,
    Subjects,
    Texts,
    codes_of,
    groups_of,
    owned,
    pairs_of,
    texts_of,
)
from graphstore.core.journal.branch_records import BranchRecords
from graphstore.core.journal.files import open_new, open_plain, patiently, write_all
from graphstore.core.journal.journal import Seal
from graphstore.core.journal.line import SCHEMA, UNDERSTOOD
from graphstore.core.journal.positions import Position
from graphstore.values.period import Instant

_MAGIC = b"graphstore index 14\n"
_WORDS = b"graphstore words 1\n"
_ALIGNED = 8
_MAP_FIXED = 0x10
_NUMBERS = (
    "born", "changed", "v_ent", "v_num", "v_pos", "v_len", "v_op", "r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close",
    "closings", "l_src", "l_tgt", "c_link", "c_num", "c_strength", "c_inferred", "c_pos", "c_len", "c_op", "k_link", "k_claim", "k_from",
    "k_to", "k_tx", "k_end", "k_op", "k_close", "link_closings", "o_tx", "o_pos", "o_len",
    "s_ent", "s_at", "s_tx", "s_op", "s_first", "s_last", "t_tx", "t_ver", "turned",
)  # fmt: skip
_TEXTS = ("names", "l_name", "key")
_CODED = ("kind", "scope", "l_kind", "c_by", "o_verb", "o_author")
_OF_THINGS = ("versions_of", "rows_of", "now_of")  # lists of lists of numbers
_OF_LINKS = ("rows_of_link", "claims_of")
_BY_THING = ("out", "into", "successors", "corrected", "even", "seen_of")  # dictionaries of such lists
_WIDE = {"gaps": 4, "turns": 4, "ghosts": 4, "link_ghosts": 4, "taken": 3}  # of lists of tuples
_PAIRS = ("fell", "refuted", "tainted", "gone")  # dictionaries of numbers
_SETS = ("rests", "based", "unread")
_PLAIN = ("last_tx", "transactions", "kinds", "promoted", "settings", "noted", "retaken")

Blocks = dict[str, Any]  # name -> numbers or bytes


def write(
    path: Path,
    index: Index,
    position: Position,
    digest: str,
    seals: Sequence[Seal],
    spans: shaky_spans.Saved = shaky_spans.NOTHING,
) -> None:
    """Write the copy, atomically."""
    header: dict[str, Any] = {
        "schema": SCHEMA, "byteorder": sys.byteorder, "understood": sorted(UNDERSTOOD), "position": list(position), "digest": digest, "seals": [(seal.size, seal.written, len(seal.checksums)) for seal in seals],
        **{name: getattr(index, name) for name in _PLAIN},
        "strands": index.branch_records.saved(), "aliases": [[*alias, ver] for alias, ver in index.aliases.items()],
        "undone_by": list(index.undone_by.items()),
        "nothing": {name: [one for one, there in getattr(index, name).items() if not there] for name in _WIDE},
        "spans": shaky_spans.FORMAT,
    }  # fmt: skip
    blocks = {"checksums": array("q", chain.from_iterable(seal.checksums for seal in seals))}
    blocks |= _blocks(index, header) | {f"spans.{name}": block for name, block in spans._asdict().items()}
    _put(path, _MAGIC, header, blocks)


def write_words(path: Path, header: dict[str, Any], blocks: Blocks, digest: str) -> None:
    """Write the words of the versions of an index that was saved with this digest, atomically."""
    _put(path, _WORDS, {**header, "schema": SCHEMA, "byteorder": sys.byteorder, "digest": digest}, blocks)


def _put(path: Path, magic: bytes, header: dict[str, Any], blocks: Blocks) -> None:
    parts, at = [], 0
    header["blocks"] = places = {}
    for name, block in blocks.items():
        data = memoryview(block)
        places[name] = [at, data.nbytes, data.format]
        parts += [block, bytes(-data.nbytes % _ALIGNED)]
        at += data.nbytes + -data.nbytes % _ALIGNED
    head = orjson.dumps(header)
    head += b" " * (-(len(magic) + 8 + len(head)) % _ALIGNED)
    fresh = path.with_suffix(".new")
    with contextlib.suppress(OSError):  # without it the next open only takes longer
        try:
            with open_new(fresh) as file:
                total = 0
                for part in (magic, len(head).to_bytes(8, "little"), head, *parts):
                    if len(part):
                        raw = memoryview(part).cast("B")
                        total = crc32(raw, total)
                        write_all(file.fileno(), raw)
                write_all(file.fileno(), total.to_bytes(4, "little"))
            patiently(lambda: fresh.replace(path))
        finally:
            fresh.unlink(missing_ok=True)


def _blocks(index: Index, header: dict[str, Any]) -> Blocks:
    """The columns of an index, and what leads to their rows."""
    things, links = len(index.names), len(index.l_name)
    blocks: Blocks = {name: getattr(index, name) for name in _NUMBERS}
    blocks["is_event"] = index.is_event
    for name in _TEXTS:
        blocks[f"{name}.starts"], blocks[f"{name}.data"] = texts_of(getattr(index, name))
    for name in _CODED:
        blocks[name], header[f"{name}_table"] = codes_of(getattr(index, name))
    blocks["o_subject"], others = _subjects(index)
    blocks["others.starts"], blocks["others.data"] = texts_of(others)
    for size, groups in ((things, (*_OF_THINGS, *_BY_THING)), (links, _OF_LINKS)):
        for name in groups:
            blocks[f"{name}.starts"], blocks[f"{name}.numbers"] = groups_of(getattr(index, name), size)
    for name, width in _WIDE.items():
        size = links if name in ("link_ghosts", "taken") else things
        blocks[f"{name}.starts"], blocks[f"{name}.numbers"] = groups_of(getattr(index, name), size, width)
    for name in _PAIRS:
        there = getattr(index, name)
        blocks[f"{name}.keys"], blocks[f"{name}.values"] = array("i", there), array("q", there.values())
    for name in _SETS:
        blocks[name] = array("i", sorted(getattr(index, name)))
    blocks["ids"] = pairs_of(index.names, range(things))
    blocks["link_ids"] = pairs_of(index.l_name, range(links))
    keyed = [(ent, (key, index.scope[ent])) for ent, key in enumerate(index.key) if key is not None]
    blocks["slots"] = pairs_of([key for _, key in keyed], [ent for ent, _ in keyed])
    confirmed = list(compress(count(), map("confirm".__eq__, index.o_verb)))
    blocks["confirmed"] = pairs_of(map(index.o_subject.__getitem__, confirmed), confirmed)
    return blocks


def _subjects(index: Index) -> tuple[array[int], Sequence[str]]:
    """The subjects of the operations as numbers: of a thing, of a link, or of another text."""
    there, first, others, known = index.o_subject, 0, dict[str, int](), array("i")
    if isinstance(there, Subjects) and all(part.is_whole for part in (there, index.names, index.l_name)):
        first, known = there.saved, owned(there.codes)
        others = {text: at for at, text in enumerate(there.tables[2])}
    fresh = [there[op] for op in range(first, len(there))] if first else list(there)
    links = index.link_ids
    for subject, ent in zip(fresh, map(index.ids.get, fresh), strict=True):
        if ent is not None:
            known.append(ent << 2)
        elif (link := links.get(subject)) is not None:
            known.append(link << 2 | 1)
        else:
            known.append(others.setdefault(subject, len(others)) << 2 | 2)
    return known, list(others)


class Copy:
    """A complete copy: its position in the journal, the digest there, what the journal before it is, and the index."""

    def __init__(self, header: dict[str, Any], data: memoryview, changed: int) -> None:
        self.position = Position(*header["position"])
        self.digest: str = header["digest"]
        checksums = iter(_block(header, data, "checksums"))
        self.seals = [
            Seal(size, written, list(islice(checksums, count))) for size, written, count in header["seals"]
        ]
        self.changed = changed  # when the file was written
        self.transactions: int = header["transactions"]
        self.last_tx: int = header["last_tx"]
        self._header, self._data = header, data

    def index(self) -> Index:
        """The index as it was saved. Its columns lie in the file until they change."""
        with no_collecting():
            return _load(self._header, self._data)


def _mapped(file: IO[bytes], size: int) -> mmap.mmap:
    """The bytes of a file, which the system reads when they are touched and may take back; what is changed of them here never reaches the file.

    Not by `mmap` alone, which would hold a descriptor as long as anything of it is in use. The file is never written to, but replaced as a whole.
    """
    whole = mmap.mmap(-1, size)
    if not _laid_over(whole, file):
        file.readinto(whole)  # type: ignore[attr-defined]
    return whole


def _laid_over(whole: mmap.mmap, file: IO[bytes]) -> bool:
    """Map a file in the place of a map. Returns False on a system without that."""
    if sys.platform == "win32":  # and which neither removes nor replaces a file that is mapped
        return False
    try:
        place = ctypes.addressof(ctypes.c_char.from_buffer(whole))
        system = ctypes.CDLL(None, use_errno=True).mmap
        system.restype = ctypes.c_void_p
        system.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        )
        flags = mmap.MAP_PRIVATE | _MAP_FIXED
        return bool(
            system(place, len(whole), mmap.PROT_READ | mmap.PROT_WRITE, flags, file.fileno(), 0) == place
        )
    except (AttributeError, TypeError):
        return False


def read(path: Path) -> Copy | None:
    """The copy at `path`, None when it is not whole or not for this program."""
    found = mapped(path)
    there = found and _checked(found[0], _MAGIC)
    return Copy(*there, found[1]) if found and there else None


def last_tx(path: Path) -> Instant:
    """The last transaction that the copy at `path` knows, by its head alone; 0 where that cannot be read."""
    start = len(_MAGIC) + 8
    try:
        with open(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
            size = int.from_bytes(file.read(start)[len(_MAGIC) :], "little")
            found = (
                orjson.loads(file.read(size))["last_tx"] if 0 < size < os.fstat(file.fileno()).st_size else 0
            )
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return 0
    return found if type(found) is int else 0


def mapped(path: Path) -> tuple[memoryview, int] | None:
    """The bytes of a file of this kind, not looked at yet, and when it was written; None when there is none."""
    try:
        with open(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if found.st_size <= len(_MAGIC) + 12:
                return None
            return memoryview(_mapped(file, found.st_size)), found.st_mtime_ns
    except OSError:
        return None


def _checked(data: memoryview, magic: bytes) -> tuple[dict[str, Any], memoryview] | None:
    """The header of a file and what follows it, None when it is not whole or not for this program."""
    start = len(magic) + 8
    if data[: len(magic)] != magic or crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    size = int.from_bytes(data[len(magic) : start], "little")
    try:
        header = orjson.loads(data[start : start + size])
    except orjson.JSONDecodeError:
        return None
    if header["schema"] != SCHEMA or header["byteorder"] != sys.byteorder:
        return None
    if not UNDERSTOOD.issuperset(header.get("understood", ())):
        return None  # a later program saved it: what it read may require what this one does not know
    return header, data[start + size :]


def words(data: memoryview, digest: str) -> tuple[dict[str, Any], dict[str, memoryview]] | None:
    """The words in a file, None when it is not whole, not for this program or was saved with another index."""
    there = _checked(data, _WORDS)
    if there is None or there[0]["digest"] != digest:
        return None
    header, data = there
    return header, {name: _block(header, data, name) for name in header["blocks"]}


def _block(header: dict[str, Any], data: memoryview, name: str) -> memoryview:
    at, size, kind = header["blocks"][name]
    return data[at : at + size].cast(kind) if size else memoryview(array(kind))


def _load(header: dict[str, Any], data: memoryview) -> Index:
    index = Index()

    def block(name: str) -> memoryview:
        return _block(header, data, name)

    def texts(name: str) -> Texts:
        return Texts(block(f"{name}.starts"), block(f"{name}.data"))

    def groups(name: str) -> tuple[memoryview, memoryview]:
        return block(f"{name}.starts"), block(f"{name}.numbers")

    parts: dict[str, Any] = {name: header[name] for name in _PLAIN}
    parts |= {name: block(name) for name in _NUMBERS}
    parts |= {name: texts(name) for name in _TEXTS}
    parts |= {name: Coded(block(name), header[f"{name}_table"]) for name in _CODED}
    parts |= {name: Groups(*groups(name)) for name in (*_OF_THINGS, *_OF_LINKS)}
    parts |= {name: Lists(*groups(name)) for name in _BY_THING}
    parts |= {name: Lists(*groups(name), width) for name, width in _WIDE.items()}
    for name in _PAIRS:
        parts[name] = dict(zip(block(f"{name}.keys").tolist(), block(f"{name}.values").tolist(), strict=True))
    parts |= {name: set(block(name).tolist()) for name in _SETS}
    names, links, scope, key = (parts[name] for name in ("names", "l_name", "scope", "key"))
    subjects = Subjects(block("o_subject"), names, links, texts("others"))
    parts |= {
        "o_subject": subjects, "is_event": bytearray(block("is_event")),
        "ids": Ids(block("ids"), names), "link_ids": Ids(block("link_ids"), links),
        "slots": Keyed(block("slots"), lambda ent: (key.made(ent), scope.made(ent))),
        "confirmed": Keyed(block("confirmed"), subjects.made),
        "branch_records": BranchRecords.loaded(header["strands"]),
        "aliases": {(branch, number, name): ver for branch, number, name, ver in header["aliases"]},
        "noted": [tuple(noted) for noted in header["noted"]],
        "retaken": [(tx, link, [tuple(piece) for piece in before]) for tx, link, before in header["retaken"]],
        "undone_by": dict(header["undone_by"]),
    }  # fmt: skip
    for name, nothing in header["nothing"].items():
        parts[name].update((one, []) for one in nothing)
    settings = parts.pop("settings")
    vars(index).update(parts)
    index.add_settings(settings)
    if header.get("spans") == shaky_spans.FORMAT:
        spans = shaky_spans.Saved(*(block(f"spans.{name}") for name in shaky_spans.Saved._fields))
        shaky_spans.load(index, spans)
    return index
