"""The table of link kinds, and checks of links that do not depend on the contents of a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from graphstore.errors import InvalidError
from graphstore.values.models import Confidence

Group = Literal["lifecycle", "factual", "thematic", "structural", "semantic", "custom"]
Creator = Literal["store", "user", "agent", "extractor", "judge", "boundary", "daemon"]

Fall = Literal["superseded", "revised", "corrected", "retracted", "ended", "evicted", "erased", "shaky"]
FALLS: tuple[Fall, ...] = get_args(Fall)
"""What can happen to the target of a link on which its source rests. `shaky`: it stands, but something it rests on does not."""

NEVER_SO: frozenset[Fall] = frozenset({"corrected", "retracted", "erased"})
"""The falls that mean that it never was true."""

CREATORS: tuple[Creator, ...] = get_args(Creator)
_CREATORS: dict[str, Creator] = {creator: creator for creator in CREATORS}
_PEOPLE: tuple[Creator, ...] = ("user", "agent", "extractor")
_STORE: tuple[Creator, ...] = ("store", "user", "agent")
_SESSIONS: tuple[Creator, ...] = ("boundary", "daemon", "user", "agent")
_DAEMON: tuple[Creator, ...] = ("daemon", "user", "agent", "extractor")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of link. `source name target` is a sentence; `inverse` names it from the other end."""

    name: str
    group: Group
    inverse: str
    symmetric: bool = False
    causal: bool = False
    """`source name target` means that target led to source."""
    forward: bool = False
    """Source is the earlier end: it may not start after the target."""
    acyclic: bool = False
    walked: bool = True
    """Followed by walks that name no kinds."""
    creators: tuple[Creator, ...] = _PEOPLE
    """The classes of creators that may create one: see `creator_of`."""
    floor: int = 1
    """A proposal weaker than this is dropped."""
    cap: int = 5
    """The strength of a stronger proposal is reduced to this."""
    table: bool = False
    """Has its own relationship table in Kùzu; the other kinds share LINK."""
    rests: frozenset[Fall] = frozenset()
    """The falls of the target that shake the source; if the target rests on the source (`upholds`), the falls of the source that shake the target."""
    upholds: bool = False
    """The target rests on the source, not the source on the target."""


def _symmetric(name: str, group: Group, **more: object) -> Kind:
    return Kind(name, group, name, symmetric=True, **more)  # type: ignore[arg-type]


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "supersedes",
            "lifecycle",
            "superseded_by",
            acyclic=True,
            walked=False,
            creators=_STORE,
            table=True,
        ),
        Kind("transition", "lifecycle", "transitioned_to", walked=False, creators=("store",), table=True),
        Kind("corrects", "lifecycle", "corrected_by", acyclic=True, creators=_STORE, table=True),
        Kind("joined_from", "lifecycle", "joined_into", acyclic=True, walked=False, creators=("store",)),
        Kind("derived_from", "lifecycle", "source_of", creators=_STORE, table=True, rests=frozenset(FALLS)),
        Kind(
            "supports",
            "lifecycle",
            "supported_by",
            creators=_STORE,
            table=True,
            rests=frozenset(FALLS),
            upholds=True,
        ),
        Kind(
            "caused_by",
            "factual",
            "causes",
            causal=True,
            creators=(*_PEOPLE, "store"),
            floor=3,
            table=True,
            rests=NEVER_SO,
        ),
        Kind("resolved_by", "factual", "resolves", creators=(*_PEOPLE, "store"), floor=3, table=True),
        Kind("part_of", "factual", "has_part", floor=3, table=True),
        Kind("precedes", "factual", "follows", floor=3),
        Kind("enables", "factual", "enabled_by", floor=3),
        Kind("blocks", "factual", "blocked_by", floor=3),
        _symmetric("co_constrains", "factual", floor=3),
        Kind("located_at", "factual", "location_of", floor=3),
        Kind("uses", "factual", "used_by", floor=3),
        Kind("works_on", "factual", "worked_on_by", floor=3),
        _symmetric("contrasts_with", "factual", floor=3),
        _symmetric("contradicts", "factual", floor=3, creators=(*_PEOPLE, "judge", "store"), table=True),
        _symmetric("related_to", "factual", floor=3, creators=CREATORS, table=True),
        _symmetric("same_topic", "thematic", walked=False, cap=2),
        Kind(
            "continuation",
            "structural",
            "continues",
            forward=True,
            acyclic=True,
            creators=_SESSIONS,
            table=True,
        ),
        Kind("fork", "structural", "forked_from", forward=True, creators=_SESSIONS),
        Kind("branch", "structural", "branched_from", forward=True, creators=_SESSIONS),
        Kind("tree_jump", "structural", "jumped_from", forward=True, creators=_SESSIONS),
        Kind("resume", "structural", "resumes", forward=True, creators=_SESSIONS),
        Kind("compaction", "structural", "compacts", forward=True, creators=_SESSIONS),
        _symmetric("semantic", "semantic", creators=_DAEMON),
        Kind("reference", "semantic", "referenced_by", creators=_DAEMON, table=True),
        Kind("lesson_application", "semantic", "lesson_applied_in", creators=_DAEMON),
        _symmetric("failure_pattern", "semantic", creators=_DAEMON),
        _symmetric("project_related", "semantic", creators=_DAEMON),
        _symmetric("technique_shared", "semantic", creators=_DAEMON),
    )
}

JOINED, JOINS = "joined_from", "joins"
"""The kind of link by which a node means another one too, and the setting that a store has once it has joined any."""

UPHOLDING = frozenset(name for name, kind in KINDS.items() if kind.upholds)
"""The kinds whose target rests on their source."""
RESTS: Mapping[str, frozenset[str]] = {name: kind.rests for name, kind in KINDS.items() if kind.rests}
"""The kinds by which one end rests on the other, each with the falls that shake it."""
FROM_DEPENDANTS = tuple(sorted(KINDS[name].inverse if name in UPHOLDING else name for name in RESTS))
"""The same kinds, named so that the source rests on the target: followed inward, they lead from a thing to what rests on it."""
OF_EVENTS = frozenset({"derived_from"})
"""The kinds by which an event rests on something."""

ALIASES: Mapping[str, str] = {"relates": "related_to", "relates_to": "related_to", "fixed_by": "resolved_by"}
"""Other names that sources use for a kind, besides the inverse names."""

_TABLES = frozenset(
    {"node", "event", "version", "op", "link", "absent", "has_version", "occurrence", "has_occurrence"}
)  # labels of the graph
_LONGEST = 200
_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{_LONGEST - 1}}}\Z")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A link as it is stored: canonical kind, canonical direction."""

    source: str
    kind: Kind
    target: str
    confidence: Confidence


def _custom(spec: Mapping[str, Any]) -> Kind:
    return Kind(group="custom", creators=CREATORS, **{**spec, "rests": frozenset(spec.get("rests", ()))})


class Vocabulary:
    """The built-in kinds and those that a store has defined."""

    def __init__(self, custom: Iterable[Mapping[str, Any]] = ()) -> None:
        self.reset(custom)

    def reset(self, custom: Iterable[Mapping[str, Any]]) -> None:
        """Reset to the built-in kinds and these."""
        kinds = {**KINDS, **{kind.name: kind for kind in map(_custom, custom)}}
        # replaced as a whole, since other threads read them
        self.kinds = kinds
        self._inverse = {kind.inverse: kind.name for kind in kinds.values() if not kind.symmetric}
        self.causal = frozenset(kind.name for kind in kinds.values() if kind.causal)
        self.symmetric = frozenset(kind.name for kind in kinds.values() if kind.symmetric)

    def extend(self, custom: Iterable[Mapping[str, Any]]) -> None:
        """Add kinds that a store has defined."""
        for spec in custom:
            self.add(_custom(spec))

    def add(self, kind: Kind) -> None:
        """Add `kind`, or replace its earlier definition. The cost must not depend on how many kinds there are."""
        self.kinds[kind.name] = kind
        self.causal = self.causal | {kind.name} if kind.causal else self.causal - {kind.name}
        self.symmetric = self.symmetric | {kind.name} if kind.symmetric else self.symmetric - {kind.name}
        if not kind.symmetric:
            self._inverse[kind.inverse] = kind.name

    @property
    def from_dependants(self) -> tuple[str, ...]:
        """Return the kinds of `FROM_DEPENDANTS`, and those of a store by which a source rests on its target."""
        own = (kind.name for kind in self.kinds.values() if kind.group == "custom" and kind.rests)
        return (*FROM_DEPENDANTS, *own)

    def canonical(self, name: str) -> str:
        """Return the stored name of a kind given by any of its names. Raises InvalidError for an unknown one."""
        plain, _, _ = self._read(name)
        return plain

    def named(self, kinds: Iterable[str] | str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the stored names of the requested kinds: those under their own names, and those under their inverse names.

        Raises InvalidError for an unknown one.
        """
        if not isinstance(kinds, (str, Iterable)):
            raise InvalidError(f"kinds {kinds!r} is no link kind. Give a name, or a list of names.")
        straight: set[str] = set()
        turned: set[str] = set()
        for name in (kinds,) if isinstance(kinds, str) else kinds:
            plain, inverse, _ = self._read(name)
            (turned if inverse else straight).add(plain)
        return frozenset(straight), frozenset(turned)

    def sentence(self, source: str, name: str, target: str, confidence: str) -> Sentence:
        """Return the link that is stored for `source name target`. An inverse name swaps the ends; `possibly_x` makes it inferred."""
        plain, turned, possibly = self._read(name)
        if confidence not in ("explicit", "inferred"):
            raise InvalidError.choice("confidence", confidence, ("explicit", "inferred"))
        if turned:
            source, target = target, source
        return Sentence(
            source,
            self.kinds[plain],
            target,
            "inferred" if possibly or confidence == "inferred" else "explicit",
        )

    def find(self, name: str) -> str | None:
        """Return the stored name of a kind as `canonical` does; None for an unknown one."""
        found = self._found(name)
        return None if found is None else found[0]

    def _read(self, name: str) -> tuple[str, bool, bool]:
        if not isinstance(name, str):
            raise InvalidError.choice("link kind", name, self.kinds)
        found = self._found(name)
        if found is None:
            raise InvalidError.choice("link kind", name, [*self.kinds, *self._inverse])
        return found

    def _found(self, name: str) -> tuple[str, bool, bool] | None:
        plain = name.strip().lower()
        possibly = plain.startswith("possibly_")
        plain = plain.removeprefix("possibly_")
        plain = ALIASES.get(plain, plain)
        if plain in self.kinds:
            return plain, False, possibly
        if plain in self._inverse:
            return self._inverse[plain], True, possibly
        return None


def spelled(name: str) -> str:
    """Return the name of the link kind that is meant by words: `Part of` is `part_of`."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def new_kind(
    name: str,
    *,
    inverse: str | None,
    symmetric: bool,
    causal: bool,
    acyclic: bool,
    rests: Iterable[str],
    vocabulary: Vocabulary,
) -> Kind:
    """Return a custom kind, checked against the vocabulary. Raises InvalidError."""
    for word in (name, inverse or name):
        if not isinstance(word, str) or not _NAME.match(word):
            raise InvalidError(
                f"{word!r} is no name for a link kind. Use lower case letters, digits and _, starting with a letter, at most {_LONGEST} characters."
            )
    if name in KINDS or name in ALIASES or name.startswith("possibly_") or name in _TABLES:
        raise InvalidError(f"{name!r} belongs to the built-in vocabulary and cannot be defined again.")
    back = name if symmetric else inverse or f"{name}_of"
    if symmetric and rests:
        raise InvalidError(
            f"{name!r} cannot be symmetric and rest: who rests on whom would be open. Leave one out."
        )
    kind = Kind(
        name,
        "custom",
        back,
        symmetric=symmetric,
        causal=causal,
        acyclic=acyclic,
        creators=CREATORS,
        rests=falls_of(rests),
    )
    if vocabulary.kinds.get(name) == kind:
        return kind
    for word in {name, back}:
        if (known := vocabulary.find(word)) is not None:
            raise InvalidError(f"{word!r} already names the link kind {known!r}. Choose another name.")
    return kind


def creator_of(created_by: str) -> Creator:
    """Return the class of a link's creator: the part before the first colon (`agent:claude`). A name of no class is that of a user."""
    plain = created_by.partition(":")[0]
    return _CREATORS.get(plain, "user")


def maker_of(source: str | None, author: str | None) -> str:
    """Return the creator of the links that a statement names: the agent in its source, or else in its author (`agent:claude`), else `user`."""
    named = (name for name in (source, author) if name is not None and creator_of(name) == "agent")
    return next(named, "user")


def same_maker(one: str, other: str) -> bool:
    """Return True if links by these two creators are one link when all else is equal. Users and agents count as the same."""
    people = ("user", "agent")
    return one == other or (creator_of(one) in people and creator_of(other) in people)


def refuse_creator(kind: Kind, created_by: str) -> None:
    """Raise InvalidError if this creator may not make links of a kind."""
    if creator_of(created_by) not in kind.creators:
        raise InvalidError(
            f"{created_by!r} may not create a link of kind {kind.name!r}. Allowed: {', '.join(kind.creators)}. "
            "Give another kind, or the created_by of who says so."
        )


def strength_of(value: int | None) -> int | None:
    """Return the checked strength: None or 1 to 5."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        raise InvalidError(
            f"strength {value!r} is out of range. Give a whole number from 1 (weak) to 5 (strong), or None."
        )
    return value


def falls_of(rests: Iterable[str]) -> frozenset[Fall]:
    """Return the checked falls that a kind names. Raises InvalidError."""
    if isinstance(rests, str) or not isinstance(rests, Iterable):
        raise InvalidError(f"rests {rests!r} is no list of falls. Give some of: {', '.join(FALLS)}.")
    found: set[Fall] = set()
    for word in rests:
        fall = next((fall for fall in FALLS if fall == word), None)
        if fall is None:
            raise InvalidError.choice("fall", word, FALLS)
        found.add(fall)
    return frozenset(found)
