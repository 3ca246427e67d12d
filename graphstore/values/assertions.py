"""Extract what a description asserts: a subject and a value. Two assertions with the same subject and different values seem to disagree.

The subject is a slot, a field of a subject, or a topic tag. Shared words do not make subjects equal: facts of different projects use the same words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphstore.values import sameness
from graphstore.values.keys import topic_name, version_of
from graphstore.values.sentences import Frame, Making, frames, is_named, makes, making, sentence

RECORDS = frozenset({"session", "segment"})
"""Kinds of node that record what was done: two similar ones do not contradict each other."""
DECISION = "decision"  # the name in a link's metadata under which the decision is stored

_VALUE_WORDS = 6  # a longer text in a field is prose
_FIELDS_MOST = 6  # fields of a content whose only subject is a tag
_BARE = re.compile(r"\W*(?:[\w./+-]+|\w+[A-ZА-ЯЁ]\w*\s+\w+)\W*")
"""A statement that is only a value: a word, or a name like `JWT` and a word."""
_BRACKETS = re.compile(r"\([^()]*\)")
_DEPTH = 3


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PROSE = ("says", "text", "statement", "thought", "claim")
_SUBJECTS = _set("subject entity about of name")
_THINGS = _set(
    "project service host server module component person user team customer client product repo repository package library file path device account"
)
_QUALIFIERS = _set(
    "env environment stage region zone scope version release branch tenant locale platform currency unit date day at time timestamp month year quarter "
    "week sprint session hour period since until when on run attempt build number seq step iteration invoice order "
    "ticket issue commit job trace serial page chapter section line"
)
"""Fields that say of what, where or when the others are true."""
_TELLING = _set(
    "id uuid ref url link role author source origin agent by created_at updated_at observed_at recorded_at created updated label title tags tag topic "
    "kind type confidence score weight priority hash digest reason why note comment description summary detail details context message example text says "
    "statement thought claim"
)
"""Fields about the statement, not about the subject."""
_PREDICATES = ("predicate", "property", "attribute", "field", "relation")
_OBJECTS = ("value", "object")
_MANY = _set(
    "use have like know own depend_on depends_on require support contain include member part_of related_to work_on works_on work_with works_with speak "
    "visited read wrote said alias todo skill hobby interest tool feature permission dependency email phone contact bug problem risk error cause benefit fix remark навык интерес action event operation command activity действие событие blocks enables causes caused_by located_near friend_of"
)
"""Fields of which one subject may have several values."""
_OWNED = _set("owned_by led_by managed_by maintained_by hosted_by provided_by")
_SINGULAR = _set("status address dns os basis https class access process progress")
_UNKNOWN = _set("unknown tbd none null n/a na ? - неизвестно нет")
_STATUS = _set(
    "decision decided implemented done todo wip idea question bug fix fixed note notes important urgent draft final current planned old obsolete "
    "deprecated review evidence fact task plan resolved open closed решение решено реализовано готово задача вопрос идея баг заметка важно черновик"
)
"""Tags that classify a statement and do not name a topic."""
_FACTUAL = _set("fact evidence decision claim statement belief preference setting")
"""Kinds whose single words are values: a node of another kind may just have a name."""
WANTED = _set("task plan question goal todo idea proposal hypothesis")
"""Kinds for what is wanted or asked: two of them exclude nothing."""
_UNASSERTED = WANTED | {"summary", "message", "chunk"}
"""Kinds whose fields and tags say nothing about a subject."""


_RECORDED = _set(
    "log run visit event measurement metric sample entry order payment transaction request commit build deploy report record observation result activity"
)
"""Kinds of records: each is about one occasion, so the next one may differ."""


class Assertion(NamedTuple):
    """A value and its subject (`of`). `renews`: it may disagree with an earlier one. Of how a thing is done, only a statement that it changed does."""

    of: tuple[str, ...]
    value: str
    renews: bool = True


def assertions(
    kind: str, key: str | None, content: Mapping[str, Any], text: str | None, tags: Iterable[str] = ()
) -> list[Assertion]:
    """Return the assertions of a description, surest first: of its slot, of fields of its subject, of its topics, and of how something is done."""
    found = [] if key is None else [Assertion(("slot", _topic(key)), sameness.statement(content, text))]
    if kind in _UNASSERTED:
        return found
    topics = sorted({name for tag in tags if (name := topic_name(tag)) and name not in _STATUS})
    if kind not in _RECORDED:
        found += _of_fields(kind, content, topics)
    said = prose(content, text)
    words = sentence(said) if topics or makes(said) else []
    made = making(words) if words else None
    told = list(frames(words)) if topics and words else []
    for topic in topics if words else ():
        found += _of_topic(kind, topic, told, made)
    if topics and words and made is None and kind in _FACTUAL and _BARE.fullmatch(_BRACKETS.sub("", said)):
        found.append(Assertion(("told", kind, "+".join(topics), "<value>"), " ".join(words)))
    if made and made.sure and is_named(made.subject):
        found += [
            Assertion(("made", kind, "", way, *made.subject), made.value, made.renewed) for way in made.ways
        ]
    return list(dict.fromkeys(found))


def _topic(key: str) -> str:
    """Return the topic of a key: `auth_v1` and `auth_v2` are versions of one topic."""
    return version_of(key)[0] or key


def disagreement(newer: Iterable[Assertion], older: Collection[Assertion]) -> Assertion | None:
    """Return the first assertion of the newer description with which the older one disagrees, or None."""
    for one in newer:
        for other in older:
            if disagree(one, other):
                return one
    return None


def disagree(newer: Assertion, older: Assertion) -> bool:
    """Return True if the newer assertion has the same subject as the older one and another value."""
    return newer.of == older.of and newer.renews and different(newer.value, older.value)


def different(one: str, other: str) -> bool:
    """Return True if two values exclude each other: they differ, and neither is a more exact form of the other (`JWT`, `JWT tokens`)."""
    if one == other or sameness.same(one, other):
        return False
    first, second = sameness.tokens(one), sameness.tokens(other)
    more = second - first if first <= second else first - second if second <= first else None
    return more is None or any(map(sameness.is_exact, more))


def about(of: tuple[str, ...]) -> str:
    """Return the subject of an assertion as text for people."""
    what, *rest = of
    if what == "slot":
        return f"slot {rest[0]}"
    if what == "field":
        return f"{rest[1]} of {', '.join(each.partition('=')[2] or each for each in rest[2:3])}"
    if what == "made" and not rest[1]:
        return f"how {' '.join(rest[3:])} is {rest[2]}"
    return f"topic {rest[1]}"


# ---- fields -----------------------------------------------------------------------------------


def _of_fields(kind: str, content: Mapping[str, Any], topics: list[str]) -> Iterator[Assertion]:
    """Yield an assertion for each single-valued field of a content, by its subject. Without a subject use its topics, if it differs in that field only."""
    subject, values, sure = _parts(content)
    if subject and not (sure or kind in _FACTUAL):
        return  # nodes about a person or a project contain much that is not a fact about them
    if subject:
        for path, value in values.items():
            yield Assertion(("field", kind, path, *subject), value)
    elif topics and len(values) <= _FIELDS_MOST:
        for path, value in values.items():
            others = [f"{name}={each.casefold()}" for name, each in sorted(values.items()) if name != path]
            yield Assertion(("field", kind, path, "+".join(topics), *others), value)


def _parts(content: Mapping[str, Any]) -> tuple[list[str], dict[str, str], bool]:
    """Return the subject of a content, most telling field first; its other single values by path; and whether it has an explicit subject."""
    ranked: dict[int, dict[str, str]] = {0: {}, 1: {}, 2: {}}
    values: dict[str, str] = {}
    for path, value in _flat(content):
        name = path.lower()
        rank = 0 if name in _SUBJECTS else 1 if name in _THINGS else 2 if name in _QUALIFIERS else 3
        if rank < 3:
            ranked[rank][path] = value
        elif name.rpartition(".")[2] not in _TELLING:
            values[path] = value
    subjects, things, qualifiers = ranked.values()
    values = _told(values)
    if values:
        named = _named(subjects) + _named(things)
        return ([*named, *_named(qualifiers)] if named else []), _single(values), bool(subjects)
    if subjects:  # then one of the other fields is the value
        return (
            _named(subjects),
            _single(things | qualifiers) if len(things) + len(qualifiers) == 1 else {},
            True,
        )
    return _named(things), _single(qualifiers) if len(qualifiers) == 1 else {}, False


def _named(fields: dict[str, str]) -> list[str]:
    return sorted(f"{path.lower()}={' '.join(sameness.words(value))}" for path, value in fields.items())


def _told(values: dict[str, str]) -> dict[str, str]:
    """Return the values; a triple (`{"predicate": "port", "value": 80}`) becomes a field with the name of its predicate."""
    predicate = next((name for name in _PREDICATES if name in values), None)
    object = next((name for name in _OBJECTS if name in values), None)
    if predicate is None or object is None:
        return values
    others = {name: value for name, value in values.items() if name not in (predicate, object)}
    return {**others, topic_name(values[predicate]): values[object]}


def _single(values: dict[str, str]) -> dict[str, str]:
    return {path: value for path, value in values.items() if _is_value(value) and not _is_many(path, value)}


def _is_value(value: str) -> bool:
    return value.casefold() not in _UNKNOWN and 0 < len(sameness.words(value)) <= _VALUE_WORDS


def _is_many(path: str, value: str) -> bool:
    """Return True if a subject may have several of a field: a verb or a plural (`uses`, `files`), unless it is a count."""
    name = path.rpartition(".")[2].lower()
    if name.endswith("_by") and name not in _OWNED:
        return True  # done by one person, and again by another
    if name in _SINGULAR or value in ("true", "false") or any(char.isdigit() for char in value):
        return name in _MANY
    return (
        name in _MANY or name.removesuffix("s") in _MANY or (name.endswith("s") and not name.endswith("ss"))
    )


def _flat(content: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            if depth < _DEPTH:
                yield from _flat(value, f"{before}{name}.", depth + 1)
        elif value is not None and not isinstance(value, (list, tuple)):
            yield f"{before}{name}", sameness.statement({"": value}, None)


# ---- sentences --------------------------------------------------------------------------------


def prose(content: Mapping[str, Any], text: str | None) -> str:
    """Return what a description says in prose: its text, else the first text of its content that is prose; "" if there is none."""
    if text is not None and text.strip():
        return text
    found = (content.get(name) for name in _PROSE)
    return next((each for each in found if isinstance(each, str) and each.strip()), "")


def _of_topic(kind: str, topic: str, told: list[Frame], made: Making | None) -> Iterator[Assertion]:
    for frame in told:
        yield Assertion(("told", kind, topic, *frame.words), frame.value)
    if made is None:
        return
    subject = made.subject if is_named(made.subject) and made.subject != tuple(topic.split("_")) else ()
    for way in made.ways:
        yield Assertion(("made", kind, topic, way, *subject), made.value, made.renewed)
    if not made.renewed and (made.told or not subject):
        yield Assertion(("told", kind, topic, *made.phrase), made.value)
