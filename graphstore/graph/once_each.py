"""Match no relationship twice in one MATCH: openCypher's rule, which the engine does not follow.

If two relationships of a pattern may be the same, the text gets the condition that they differ; a pattern of variable length becomes a TRAIL. If neither
can be expressed, the text is refused. In a graph of periods one link joins several rows of its ends, so links are compared by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from graphstore.errors import QueryError
from graphstore.graph.statement import CypherStatement, Edit, Token, edited, text_at

_ENDS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "UNION", "ORDER"})
"""Words that begin the clause after a condition."""
_MODES = frozenset({"TRAIL", "ACYCLIC", "SHORTEST", "ALL", "WSHORTEST", "WALK"})


@dataclass(slots=True)
class _Relationship:
    """A relationship of a pattern. `at`: where a name can be inserted, between the texts of `around`; `star`: the place after its star, -1 without one."""

    name: str | None
    at: int
    around: tuple[str, str]
    labels: frozenset[str]
    star: int
    is_plain: bool
    source: str
    target: str
    is_directed: bool

    def may_be(self, other: _Relationship) -> bool:
        """Return True if one relationship may match both. No relationship leads from a thing to itself."""
        if self.labels and other.labels and not self.labels & other.labels:
            return False
        if self.star >= 0 or other.star >= 0 or not (self.is_directed and other.is_directed):
            return True
        return self.target != other.source and self.source != other.target


PLACE, LINK_ID = "id({})", "{}.id"
"""The expression that identifies a relationship: its place in the engine, or the id of the link whose row it is."""


def once_each(statement: CypherStatement, identity: str = PLACE) -> CypherStatement:
    """Return the statement with conditions that keep its relationships distinct. Raises QueryError if that is impossible."""
    tokens = statement.tokens
    added: list[Edit] = []
    taken = {token.text for token in tokens}
    for at, token in enumerate(tokens):
        if token.word == "MATCH" and text_at(tokens, at - 1) not in (".", ":", "|"):
            pattern = Pattern(tokens, at + 1)
            if pattern.read() and pattern.relationships:
                added += _additions(tokens, pattern, taken, identity)
    return CypherStatement(edited(statement.text, added)) if added else statement


def _additions(tokens: Sequence[Token], pattern: Pattern, taken: set[str], identity: str) -> Iterator[Edit]:
    pairs = [(one, other) for one, other in combinations(pattern.relationships, 2) if one.may_be(other)]
    if any(one.star >= 0 or other.star >= 0 for one, other in pairs):
        raise QueryError(
            "in one MATCH no relationship is used twice, and this engine cannot see to it where one of variable length (*) may pass another of the pattern. "
            "Name kinds that differ, or put one of them into a MATCH of its own."
        )
    for each in pattern.relationships:
        if each.star >= 0 and each.is_plain:
            yield each.star, each.star, " TRAIL "
    several = [each for each in pattern.relationships if each.star >= 0 and identity == LINK_ID]
    fresh = [each for each in (*chain.from_iterable(pairs), *several) if each.name is None]
    if fresh and returns_all(tokens):
        raise QueryError(
            "two relationships of a MATCH may be the same one here, and they have no names to keep them apart by. "
            "Name them, as in -[r:CAUSED_BY]->, or say what to RETURN instead of *."
        )
    for each in fresh:
        if each.name is None:
            each.name = next(name for n in range(1_000) if (name := f"_rel{n}") not in taken)
            taken.add(each.name)
            yield each.at, each.at, f"{each.around[0]}{each.name}{each.around[1]}"
    said = [f"{identity.format(one.name)} <> {identity.format(other.name)}" for one, other in pairs]
    said += [
        f"size(list_distinct(properties(rels({each.name}), 'id'))) = length({each.name})" for each in several
    ]
    if said:
        yield from condition(tokens, pattern.end, " AND ".join(said))


def condition(tokens: Sequence[Token], end: int, said: str) -> Iterator[Edit]:
    """Yield the edits that add a condition to the MATCH whose pattern ends at `end`."""
    if end < len(tokens) and tokens[end].word == "WHERE":
        stop, depth = end + 1, 0
        while stop < len(tokens):
            token = tokens[stop]
            joined = token.word == "WITH" and tokens[stop - 1].word in ("STARTS", "ENDS")
            if depth == 0 and token.word in _ENDS and tokens[stop - 1].text != "." and not joined:
                break
            depth += token.nesting
            if depth < 0:
                break
            stop += 1
        yield tokens[end].end, tokens[end].end, f" {said} AND ("
        yield tokens[stop - 1].end, tokens[stop - 1].end, ")"
    else:
        yield tokens[end - 1].end, tokens[end - 1].end, f" WHERE {said}"


def returns_all(tokens: Sequence[Token]) -> bool:
    """Return True if a RETURN or WITH returns all names (`*`)."""
    for one, then, after in zip(tokens, tokens[1:], [*tokens[2:], Token("", "", 0)], strict=False):
        if one.word in ("RETURN", "WITH") and (
            then.text == "*" or (then.word == "DISTINCT" and after.text == "*")
        ):
            return True
    return False


class Pattern:
    """The pattern of a MATCH, whose tokens begin at `start`."""

    def __init__(self, tokens: Sequence[Token], start: int) -> None:
        self._tokens, self.end = tokens, start
        self.relationships: list[_Relationship] = []
        self.opened: list[tuple[int, str]] = []
        """The index of the bracket of each node and relationship, and its name, "" if it has none."""

    def read(self) -> bool:
        """Read the pattern. Return False if it is malformed; the engine reports that."""
        while True:
            if self._text(1) == "=":
                self.end += 2
            left = self._node()
            while left and self._text() in ("-", "<"):
                right = self._hop(left)
                if right is None:
                    return False
                left = right
            if not left:
                return False
            if self._text() != ",":
                return True
            self.end += 1

    def _text(self, ahead: int = 0) -> str:
        return text_at(self._tokens, self.end + ahead)

    def _skip(self) -> tuple[Sequence[Token], str]:
        """Return the tokens within the bracket that begins here, and its name; move past it."""
        begin, depth = self.end, 0
        while self.end < len(self._tokens):
            token = self._tokens[self.end]
            depth += token.nesting
            self.end += 1
            if depth == 0:
                break
        within = self._tokens[begin + 1 : self.end - 1]
        name = within[0].text if within and within[0].kind in ("word", "quoted") else ""
        self.opened.append((begin, name))
        return within, name

    def _node(self) -> str:
        """Return the identity of a node; "" if there is none."""
        if self._text() != "(":
            return ""
        place = self.end
        _, name = self._skip()
        return name.strip("`") or f"({place})"

    def _hop(self, left: str) -> str | None:
        """Read a relationship and the node after it. Return the identity of the node; None if this is not a hop."""
        back = self._text() == "<"
        self.end += back
        if self._text() != "-":
            return None
        at = self._tokens[self.end].start + 1
        self.end += 1
        within: Sequence[Token] = ()
        name, around = "", ("[", "]")
        if self._text() == "[":
            at = self._tokens[self.end].start + 1
            within, name = self._skip()
            around = ("", "")
        if self._text() != "-":
            return None
        self.end += 1
        ahead = self._text() == ">"
        self.end += ahead
        right = self._node()
        if not right:
            return None
        made = _described(name, within[1:] if name else within, at, around)
        made.source, made.target = (right, left) if back else (left, right)
        made.is_directed = back != ahead
        self.relationships.append(made)
        return right


def _described(name: str, rest: Sequence[Token], at: int, around: tuple[str, str]) -> _Relationship:
    """Return a relationship from its name and the other tokens within its brackets."""
    labels, number = labels_at([*(token.text for token in rest), "", ""], 0)
    star, plain = -1, True
    if number < len(rest) and rest[number].text == "*":
        star = rest[number].start + 1
        plain = not (number + 1 < len(rest) and rest[number + 1].word in _MODES)
    return _Relationship(name or None, at, around, labels, star, plain, "", "", False)


def labels_at(words: Sequence[str], at: int) -> tuple[frozenset[str], int]:
    """Return the labels or kinds that begin at `at`, in upper case, and the index after them. `words` must end with two empty ones."""
    found = set()
    while words[at] in (":", "|"):
        at += 1 + (words[at + 1] == ":")
        found.add(words[at].strip("`").upper())
        at += 1
    return frozenset(found), at
