"""Finds the names of a person in texts, in any case and Unicode form: whole names, their possessives, and what may be an inflection or a part of one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property

from graphstore.values.words import fold

_LEAST = 3  # letters of a part of a name that is looked for by itself
_VOWELS = "aeiouyаеёиоуыэюяіїє"
_PREFIXES = r"\W*(?:(?:the|our|my|user|customer|mr|mrs|ms|dr|prof|herr|frau)\b\W*){0,2}@?"
_SENTENCE = re.compile(r"(?<=[.!?;:\n])\s+")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<!\w)@\w[\w.-]*\w")
_NEVER = re.compile(r"(?!)")


def plain(text: str) -> str:
    """Return a text in NFC with its case folded.

    >>> plain("ANNA Sch\u00c4fer") == plain("anna scha\u0308fer")
    True
    """
    return (
        text.casefold()
        if text.isascii()
        else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


class PersonNames:
    """The names of one person: as people write them, e-mail addresses, handles and ids."""

    def __init__(self, names: Iterable[str]) -> None:
        found = (" ".join(plain(name).split()) for name in names)
        self.names = tuple(dict.fromkeys(name for name in found if name.strip("@")))
        self._exact = {name.strip("@") for name in self.names}

    def is_one(self, value: object) -> bool:
        """Return True if a value is one of the names, or a path or a class that ends with one, such as `person:anna`."""
        if not isinstance(value, str):
            return False
        given = " ".join(plain(value).split())
        return bool({given.strip("@"), re.split(r"[:/]", given)[-1].strip("@")} & self._exact)

    def is_in_path(self, path: str) -> bool:
        """Return True if a part of a path is one of the names."""
        return any(self.is_one(part) for part in path.split("/"))

    def is_key(self, key: str) -> bool:
        """Return True if a slot is that of one of the names, or of something of theirs, such as `anna_phone`."""
        slots = {re.sub(r"\W+", "_", name).strip("_") for name in self.names}
        return any(key == slot or key.startswith(f"{slot}_") for slot in slots)

    def is_named(self, text: str) -> bool:
        """Return True if a text has one of the names.

        >>> anna = PersonNames(["Anna"])
        >>> anna.is_named("what ANNA's team does"), anna.is_named("Annapolis")
        (True, False)
        """
        return self._whole.search(plain(text)) is not None

    def is_about(self, text: str) -> bool:
        """Return True if a sentence of a text begins with one of the names.

        >>> anna = PersonNames(["Anna"])
        >>> anna.is_about("Anna lives in Rome."), anna.is_about("Ask Anna.")
        (True, False)
        """
        return any(self._first.match(sentence) for sentence in _SENTENCE.split(plain(text)))

    def may_be_named(self, text: str) -> bool:
        """Return True if a text has what may be an inflection, another spelling or a part of one of the names.

        >>> anna = PersonNames(["Anna Novak"])
        >>> anna.may_be_named("od Anny Novakov\u00e9"), anna.may_be_named("Anna said so")
        (True, True)
        """
        return self._near.search(fold(text)) is not None

    def addresses_in(self, text: str) -> list[str]:
        """Return the e-mail addresses and handles in a text that begin like a part of one of the names.

        >>> PersonNames(["Anna Novak"]).addresses_in("Anna Novak: a.novak@home.cz, @annan, or office@home.cz")
        ['a.novak@home.cz', '@annan']
        """
        starts = {
            part[:_LEAST] for name in self.names for part in re.split(r"\W+", name) if len(part) >= _LEAST
        }
        found = ((each, each.lstrip("@").partition("@")[0]) for each in _ADDRESS.findall(plain(text)))
        return [address for address, own in found if any(start in own for start in starts)]

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return _any_of(map(_as_written, self.names))

    @cached_property
    def _first(self) -> re.Pattern[str]:
        return re.compile(f"{_PREFIXES}(?:{'|'.join(map(_as_written, self.names)) or '(?!)'})")

    @cached_property
    def _near(self) -> re.Pattern[str]:
        whole = [re.split(r"\W+", fold(name)) for name in self.names if "@" not in name]
        forms = [r"[\W_]+".join(map(_inflected, parts)) for parts in whole]
        parts = [
            _inflected(part) for parts in whole if len(parts) > 1 for part in parts if len(part) >= _LEAST
        ]
        return _any_of(rf"(?<!\w){form}(?!\w)" for form in (*forms, *parts))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(patterns)
    return re.compile(joined) if joined else _NEVER


def _as_written(name: str) -> str:
    """Return the pattern of a name, with any space or mark between its parts, and its possessive."""
    parts = r"[\s._-]+".join(map(re.escape, name.strip("@").split()))
    if "@" in name.strip("@"):
        return rf"(?<![\w.+-]){parts}(?![\w-]|\.\w)"
    before = "" if _is_unspaced(name[0]) else r"(?<!\w)"
    after = "" if _is_unspaced(name[-1]) else r"(?:['’]?s|['’])?(?!\w)"
    return f"{before}{parts}{after}"


def _is_unspaced(letter: str) -> bool:
    """Return True for a letter of a script without case, in which words may be written without spaces."""
    return unicodedata.category(letter) == "Lo"


def _inflected(part: str) -> str:
    """Return the pattern of a part of a name with at most three other letters at its end."""
    if len(part) <= _LEAST or not part.isalpha():
        return re.escape(part)
    return rf"{re.escape(part.rstrip(_VOWELS) if len(part.rstrip(_VOWELS)) >= _LEAST else part)}\w{{0,3}}"
