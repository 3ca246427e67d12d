"""Expand the words about time that a Cypher text may use: AS_OF, BELIEVED, HAPPENED, HOLDS, OVERLAPS, MEET, FIELD, TEXT_OF, OPEN.

The engine's own macros cannot contain parameters, so these are expanded before it gets the text. `x.valid_to IS NULL` is expanded too: an open end is an
instant in the tables, and NULL in an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from graphstore.errors import QueryError
from graphstore.graph import texts
from graphstore.graph.statement import Edit, Token, edited, text_at, tokens_of
from graphstore.values.coordinates import Axis
from graphstore.values.period import moment

if TYPE_CHECKING:
    from graphstore.graph.workers import AnyEngine

WORDS = ("AS_OF", "BELIEVED", "HAPPENED", "HOLDS", "OVERLAPS", "MEET", "TEXT_OF")
OPEN_END = "timestamp('9999-12-31 23:59:59.999999')"
AXES: Mapping[str, tuple[Axis, ...]] = {"AS_OF": ("valid", "tx"), "BELIEVED": ("tx",), "HAPPENED": ("valid",)}
"""The parameters that a word reads besides its arguments."""
_USED = re.compile(rf"\b((?i:{'|'.join(WORDS)}|FIELD)|OPEN)\b|\b(?i:IS\s+(NOT\s+)?NULL)\b")
_OF_ENDS = re.compile(r"\b(?:coalesce|ifnull|count)\s*\(", re.IGNORECASE)
"""Functions whose result depends on which of their arguments are NULL."""
_LABEL = re.compile(r"\blabels?\s*\(", re.IGNORECASE)
"""A call that the engine would expand to all existing labels in the name of a column, so that the name would vary."""
_TRAVERSED = re.compile(r"\]\s*-|-\s*\[|--")
_ENDS = frozenset({"ORDER", "SKIP", "LIMIT", "UNION"})
_CASTS = {"whole": "INT64", "number": "DOUBLE", "truth": "BOOL"}
_KINDS = {"s": "text", "e": "text", "b": "truth", "i": "whole", "d": "number", "j": "json"}

FieldOf = Callable[[str, str], str]
"""Returns the expression for a field, given its variable and its name."""


def reads(cypher: str) -> set[Axis]:
    """Return the axes, `valid` and `tx`, that the words of a text need."""
    if not isinstance(cypher, str) or not _USED.search(cypher):
        return set()
    return {axis for token in tokens_of(cypher) for axis in AXES.get(token.word, ())}


def with_coordinate(
    cypher: str, params: Mapping[str, Any], at: Callable[[Axis, Any], int]
) -> Mapping[str, Any]:
    """Return the parameters with `valid` and `tx`, if words of the text need them. `at` reads a time of an axis; None means its default."""
    needed = reads(cypher)
    return {**params, **{axis: moment(at(axis, params.get(axis))) for axis in needed}} if needed else params


def written_out(cypher: str, field: FieldOf, *, of_view: bool) -> str:
    """Return the text with all words expanded. Raises QueryError for a word with the wrong arguments."""
    ends = ("valid_to",) if of_view else ("valid_to", "tx_to")
    if not isinstance(cypher, str):
        return cypher
    by_end = _OF_ENDS.search(cypher) and any(end in cypher for end in ends)
    if not _USED.search(cypher) and not _LABEL.search(cypher) and not by_end:
        return cypher
    known = _written(of_view, _TRAVERSED.search(cypher) is not None)
    return _ends_as_shown(_words(_named(cypher, ends), known, field), ends)


@cache
def _written(of_view: bool, hops: bool) -> texts.Macros:
    """Return the expanded words, in brackets. In a traversal each is a CASE: otherwise the planner underestimates the rows and scans all links."""
    known = texts.macros()
    found = {}
    for word in WORDS:
        parameters, body = known[f"VIEW_{word}" if of_view and f"VIEW_{word}" in known else word]
        body = texts.expand(body, known)
        wrap = hops and word in AXES
        found[word] = (parameters, f"(CASE WHEN {body} THEN true ELSE false END)" if wrap else f"({body})")
    return found


def _named(cypher: str, ends: Sequence[str]) -> str:
    """Name each unnamed column that uses a word or a label after its original text."""
    tokens = list(tokens_of(cypher))
    names = _names_of_ends([token.text for token in tokens], ends)
    of_end = re.compile(
        rf"{_OF_ENDS.pattern}.*?\b({'|'.join(map(re.escape, (*ends, *names)))})\b", re.IGNORECASE | re.DOTALL
    )
    edits: list[Edit] = []
    first, depth, named = -1, 0, False  # the index where the item of a RETURN begins
    for at, token in enumerate([*tokens, Token("end", "", len(cypher))]):
        word = token.word if depth == 0 and text_at(tokens, at - 1) != "." else ""
        ended = token.kind == "end" or word in _ENDS or (depth == 0 and token.text == ",")
        if 0 <= first < at and ended:
            end = tokens[at - 1].end
            text = cypher[tokens[first].start : end]
            used = _USED.search(text) or _LABEL.search(text) or of_end.search(text)
            if used and not named and "`" not in text:
                edits.append((end, end, f" AS `{text.removeprefix('DISTINCT ')}`"))
            first, named = at + 1 if token.text == "," else -1, False
        elif first < 0 and word == "RETURN":
            first = at + 1
        named = first >= 0 and (named or word == "AS")
        depth += token.nesting
    return edited(cypher, edits)


def _words(cypher: str, known: texts.Macros, field: FieldOf) -> str:
    tokens = list(tokens_of(cypher))
    edits: list[Edit] = []
    at = 0
    while at < len(tokens):
        token, before, behind = tokens[at], text_at(tokens, at - 1), text_at(tokens, at + 1)
        word = token.word if before not in (".", ":", "|") else ""
        if behind == "(" and (word in known or word == "FIELD"):
            given, at = texts.call_at(cypher, tokens, at + 2)
            given = [_words(each, known, field) for each in given]
            shown = _field(given, field) if word == "FIELD" else _called(word, given, known)
            edits.append((token.start, tokens[at - 1].end, shown))
            continue
        if token.text == "OPEN" and word and behind not in ("(", ":") and before.upper() != "AS":
            edits.append((token.start, token.end, OPEN_END))
        at += 1
    return edited(cypher, edits)


def _called(word: str, given: Sequence[str], known: texts.Macros) -> str:
    times = [
        f"timestamp({each})" if name in ("a", "b") and each[:1] in ("'", '"') else each
        for name, each in zip_longest(known[word][0], given)
        if each is not None
    ]
    return texts.called(word, times, known)


def _field(given: list[str], field: FieldOf) -> str:
    if len(given) != 2 or not given[0].strip("`").isidentifier() or given[1][:1] not in ("'", '"'):
        raise QueryError(
            f"FIELD takes a variable and the name of a field in quotes, as in FIELD(n, 'total'), not ({', '.join(given)})."
        )
    return field(given[0], given[1][1:-1])


def in_content(engine: AnyEngine, label: str, variable: str, name: str) -> str:
    """Return the expression for a field of a label's contents, which are JSON text. It has the type on which the values agree, else it is JSON text."""
    if "\\" in name or "'" in name:
        raise QueryError(f"FIELD cannot ask for {name!r}: a name has no quotes and no backslash.")
    if "." in name:
        raise QueryError(
            f"FIELD cannot ask for {name!r} here: the engine takes the dot for a way into a map. For that write 'a/b'; a field of this very name "
            f"is a property in a view (n.`{name}`), and a column of history_table(fields=[{name!r}])."
        )
    kinds = [row[0] for row in engine.run(texts.text("kinds_of_field", LABEL=label), name=name)]
    found = {_KINDS[each] for each in kinds if each in _KINDS}
    value = f"json_extract({variable}.content, '{name}')"
    kind = found.pop() if len(found) == 1 else "number" if found == {"whole", "number"} else "json"
    said = value
    if kind == "text":
        known = texts.macros()
        said = (
            texts.expand(f"TEXT_OF({value})", known)
            if "e" in kinds
            else f"substring({value}, 2, size({value}) - 2)"
        )
    given = f"CASE WHEN {value} = '' OR {value} = 'null' THEN NULL ELSE {said} END"
    return f"CAST({given} AS {_CASTS[kind]})" if kind in _CASTS else f"({given})"


def _names_of_ends(words: Sequence[str], ends: Sequence[str]) -> set[str]:
    """Return the names given to an end of a period, or to the first or last of them."""
    found: set[str] = set()
    for at, word in enumerate(words):
        if word not in ends or words[at - 1 : at] != ["."]:
            continue
        last = words[at + 1 : at + 2] == [")"] and [each.upper() for each in words[at - 4 : at - 3]] in (
            ["MIN"],
            ["MAX"],
        )
        if [each.upper() for each in words[at + 1 + last : at + 2 + last]] == ["AS"]:
            found.update(words[at + 2 + last : at + 3 + last])
    return found


def _ends_as_shown(cypher: str, ends: Sequence[str]) -> str:
    """Replace uses of an end of a period, or of a name given to one, that must see NULL for an open end: IS NULL, `coalesce` and `count`."""
    tokens = list(tokens_of(cypher))
    words = [token.text for token in tokens]
    upper = [word.upper() for word in words]
    names = _names_of_ends(words, ends)
    edits: list[Edit] = []
    opened: list[str] = []
    for at, word in enumerate(upper):
        if word in ("(", "[", "{"):
            opened.append(upper[at - 1] if word == "(" and at else word)
        elif word in (")", "]", "}"):
            opened = opened[:-1]
        if words[at] in ends and words[at - 1 : at] == ["."] and at >= 2:
            first = at - 2
        elif words[at] in names and words[at - 1 : at] != ["."]:
            first = at
        else:
            continue
        value, behind = "".join(words[first : at + 1]), upper[at + 1 : at + 4]
        argument = upper[first - 1 : first] in (["("], [","], ["DISTINCT"]) and behind[:1] in ([")"], [","])
        if argument and opened[-1:] in (["COALESCE"], ["IFNULL"], ["COUNT"]):
            last, shown = at, f"CASE WHEN {value} = {OPEN_END} THEN NULL ELSE {value} END"
        elif behind[:2] == ["IS", "NULL"]:
            last, shown = at + 2, f"({value} IS NULL OR {value} = {OPEN_END})"
        elif behind == ["IS", "NOT", "NULL"]:
            last, shown = at + 3, f"({value} IS NOT NULL AND {value} <> {OPEN_END})"
        else:
            continue
        edits.append((tokens[first].start, tokens[last].end, shown))
    return edited(cypher, edits)
