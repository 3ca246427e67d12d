"""Rewrites statements on the trunk to see only what some scopes contain: each view is replaced by a query without the rows outside.

A node is in its own scope. An event is in the `scope` of the metadata that it was first recorded with. A link is inside if both its ends are. Standings are
rows of the whole ledger, so they may depend on things outside. Of the settings only the languages are visible, and whether any nodes were joined; and no branches.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections import OrderedDict
from typing import Any

from graphstore.ledger.branch_rows import SPAN, with_views
from graphstore.ledger.chain import OF_LINKS, OF_THE_STORE, UNDO
from graphstore.values.period import OPEN, Instant
from graphstore.values.vocabulary import JOINS

_LANGUAGES = "languages"
_KEPT = 256  # large transactions whose hidden reasons are cached per connection
_LARGE = 16  # operations; transactions with at least this many are cached
_OF_ENTITIES = (
    "version",
    "period",
    "removed",
    "changed",
    "told",
    "forgotten",
    "message",
    "shaky",
    "taken",
    "taken_ever",
)
_OF_LINKS = ("claim", "link_period", "linked")
_COLUMNS = {
    "shaky": "a.entity, a.valid_from, a.tx_from, a.valid_to, a.tx_to",
    "taken": "a.number, a.entity, a.link, a.version, a.valid_from, a.valid_to",
    "taken_ever": "a.number, a.entity, a.version, a.valid_from, a.valid_to, a.tx_from, a.tx_to",
}  # of other tables all columns
_TRUNK = {
    "forgotten": f"+a.operation < {SPAN}", "message": f"+a.period < {SPAN}", "shaky": "+a.line = 0",
    "taken": f"+a.number < {SPAN} AND a.tx_to = {OPEN}",
}  # fmt: skip
_HIDDEN = re.compile(r"has_hidden_reason\('((?:[^']|'')*)', a\.tx, a\.body\)")
_REASON = "json_extract(CAST({}.data AS TEXT), '$.reason')"


def within(scope: object, granted: tuple[str, ...]) -> bool:
    """Return True if a scope (a path) is one of the granted ones or below one."""
    return isinstance(scope, str) and any(scope == each or scope.startswith(f"{each}/") for each in granted)


class ScopedRows:
    """Rewrites statements for one set of scopes. `kinds`: the kinds of link defined by the store that links inside have."""

    def __init__(self, scopes: tuple[str, ...], kinds: frozenset[str] = frozenset()) -> None:
        self._scopes = scopes
        self._statements: dict[str, str] = {}
        self._views = self._made(kinds)

    def statement(self, text: str) -> str:
        """Return a statement of the trunk, changed to see only what the scopes contain."""
        found = self._statements.get(text)
        if found is None:
            found = self._statements[text] = with_views(text, self._views)
        return found

    def _within(self, column: str) -> str:
        """Return the condition that a column is the path of a scope inside."""
        parts = [
            f"{column} = {_text(scope)} OR ({column} >= {_text(scope + '/')} AND {column} < {_text(scope + '0')})"
            for scope in self._scopes  # `0` is the next character after `/`
        ]
        return "(" + " OR ".join(parts) + ")"

    def _is_inside(self, entity: str) -> str:
        """Return the condition that a row of all_entity, given by its alias, is inside."""
        return (
            f"CASE {entity}.is_event WHEN 0 THEN {self._within(f'{entity}.scope')} ELSE EXISTS "
            f"(SELECT 1 FROM main.all_event_scope es WHERE es.entity = {entity}.number AND {self._within('es.scope')}) END"
        )

    def _entity(self, number: str) -> str:
        return f"EXISTS (SELECT 1 FROM main.all_entity ie WHERE ie.number = {number} AND {self._is_inside('ie')})"

    def _ends(self, link: str) -> str:
        return f"({self._entity(f'{link}.source')} AND {self._entity(f'{link}.target')})"

    def _link(self, number: str) -> str:
        return f"EXISTS (SELECT 1 FROM main.all_link il WHERE il.number = {number} AND {self._ends('il')})"

    def _made(self, kinds: frozenset[str]) -> dict[str, str]:
        found = {
            "entity": f"SELECT a.* FROM main.all_entity a WHERE +a.number < {SPAN} AND {self._is_inside('a')}",
            "link": f"SELECT a.* FROM main.all_link a WHERE +a.number < {SPAN} AND {self._ends('a')}",
        }
        inside = dict.fromkeys(_OF_ENTITIES, self._entity("a.entity")) | dict.fromkeys(
            _OF_LINKS, self._link("a.link")
        )
        for table, condition in inside.items():
            columns, trunk = _COLUMNS.get(table, "a.*"), _TRUNK.get(table, f"+a.number < {SPAN}")
            rows = table.removesuffix("_ever")
            found[table] = f"SELECT {columns} FROM main.all_{rows} a WHERE {trunk} AND {condition}"
        standing = (
            f"CASE WHEN {self._is_superseded_outside('a')} THEN 'ended' ELSE a.standing END AS standing"
        )
        found["absence"] = (
            f"SELECT a.entity, a.valid_from, a.tx_from, a.valid_to, a.tx_to, {standing} FROM main.all_absence a WHERE +a.line = 0 "
            f"AND {self._entity('a.entity')}"
        )
        found["tag"] = (
            f"SELECT a.* FROM main.all_tag a WHERE +a.version < {SPAN} "
            f"AND EXISTS (SELECT 1 FROM main.all_version iv WHERE iv.number = a.version AND {self._entity('iv.entity')})"
        )
        names = ", ".join(_text(kind) for kind in sorted(kinds))
        found["defined"] = (
            f"SELECT a.* FROM main.all_defined a WHERE +a.number < {SPAN} AND json_extract(a.kind, '$.name') IN ({names})"
        )
        found["setting"] = (
            f"SELECT a.* FROM main.all_setting a WHERE +a.number < {SPAN} AND a.name IN ({_text(_LANGUAGES)}, {_text(JOINS)})"
        )
        found["line"] = "SELECT * FROM main.line a WHERE 0"
        found["alias"] = "SELECT branch, entity, ordinal, version FROM main.all_alias a WHERE a.line = -1"
        found["occurrence"] = self._occurrences()
        return found | self._operations()

    def _is_superseded_outside(self, absence: str) -> str:
        """Return the condition that only something outside superseded a node, whose row of all_absence has this alias. Inside it has ended."""
        periods = " AND ".join(
            f"ap.{axis}_from < {absence}.{axis}_to AND ap.{axis}_to > {absence}.{axis}_from"
            for axis in ("valid", "tx")
        )
        return (
            f"{absence}.standing = 'superseded' AND EXISTS (SELECT 1 FROM main.all_entity an WHERE an.number = {absence}.entity AND NOT an.is_event) "
            f"AND NOT EXISTS (SELECT 1 FROM main.all_link al CROSS JOIN main.all_link_period ap ON ap.link = al.number AND {periods} "
            f"WHERE al.target = {absence}.entity AND al.kind = 'supersedes' AND +al.number < {SPAN} AND {self._entity('al.source')})"
        )

    # ------------------------------------------------------------------ occurrences

    def _occurrences(self) -> str:
        """Return the query of occurrences of events inside, except those whose own metadata name a scope outside."""
        own = "CAST(ob.data AS TEXT), '$.own.metadata"
        scope = f"json_extract({own}.scope')"
        seen = (
            f"+{{0}}.number < {SPAN} AND NOT EXISTS (SELECT 1 FROM main.all_operation oo CROSS JOIN main.body ob ON ob.number = oo.body "
            f"WHERE oo.number = {{0}}.operation AND json_type({own}') IS NOT NULL "
            f"AND (json_type({own}.scope') IS NOT 'text' OR NOT {self._within(scope)}))"
        )
        so_far = f"FROM main.all_occurrence s WHERE s.event = a.event AND s.number <= a.number AND {seen.format('s')}"
        columns = (
            f"a.number, a.event, a.occurred_at, a.tx, a.operation, (SELECT min(s.occurred_at) {so_far}) AS first, "
            f"(SELECT max(s.occurred_at) {so_far}) AS last, (SELECT count(*) {so_far}) AS ordinal"
        )
        return f"SELECT {columns} FROM main.all_occurrence a WHERE {self._entity('a.event')} AND {seen.format('a')}"

    # ------------------------------------------------------------------ operations

    def _operations(self) -> dict[str, str]:
        """Return the queries of operations: `operation` has all that rows inside may name, `done` has those that did something inside, for lists."""
        scopes = _text("\n".join(self._scopes))
        body = (
            f"CASE WHEN a.body IS NULL OR NOT {self.is_on_inside('a')} OR has_hidden_reason({scopes}, a.tx, a.body) THEN NULL "
            "ELSE a.body END AS body"
        )
        trunk = f"FROM main.all_operation a WHERE +a.number < {SPAN}"
        subject = f"CASE WHEN {self.is_on_inside('a')} THEN a.subject ELSE '' END AS subject"
        return {
            "operation": f"SELECT a.number, a.tx, a.verb, a.subject, a.author, {body}, a.recorded {trunk}",
            "done": (
                f"SELECT a.number, a.tx, a.verb, {subject}, a.author, {body}, a.recorded {trunk} AND ({self.is_on_inside('a')} OR {self._wrote_inside('a')})"
            ),
        }

    def is_on_inside(self, operation: str) -> str:
        """Return the condition that the subject of an operation is inside; for an `undo`, that the undone transaction did something inside."""
        first = f"SELECT u.tx FROM main.all_undone u WHERE u.operation = {operation}.number"
        more = "SELECT u.tx FROM back CROSS JOIN main.all_operation x ON x.tx = back.tx CROSS JOIN main.all_undone u ON u.operation = x.number"
        undone = (
            f"WITH RECURSIVE back (tx) AS ({first} UNION {more}) SELECT 1 FROM back CROSS JOIN main.all_operation y ON y.tx = back.tx "
            f"AND +y.number < {SPAN} AND y.verb <> '{UNDO}' AND ({self._subject_inside('y')} OR {self._wrote_inside('y')})"
        )
        return f"CASE WHEN {operation}.verb = '{UNDO}' THEN EXISTS ({undone}) ELSE {self._subject_inside(operation)} END"

    def _subject_inside(self, operation: str) -> str:
        of = f"{operation}.subject"
        return (
            f"CASE WHEN {operation}.verb IN ({_texts(OF_LINKS)}) THEN EXISTS "
            f"(SELECT 1 FROM main.all_link sl WHERE sl.id = {of} AND +sl.number < {SPAN} AND {self._ends('sl')}) "
            f"WHEN {operation}.verb IN ({_texts(OF_THE_STORE)}) THEN 0 ELSE EXISTS "
            f"(SELECT 1 FROM main.all_entity se WHERE se.id = {of} AND +se.number < {SPAN} AND {self._is_inside('se')}) END"
        )

    def _wrote_inside(self, operation: str) -> str:
        """Return the condition that an operation on something outside wrote rows of a thing inside that is linked with its subject."""
        of, number = f"{operation}.subject", f"{operation}.number"
        ends = " UNION ALL ".join(
            [
                f"SELECT {side}.{end} FROM main.all_link {side} WHERE {side}.id = {of}"
                for side, end in (("wa", "source"), ("wb", "target"))
            ]
            + [
                f"SELECT wl.{far} FROM main.all_entity we CROSS JOIN main.all_link wl ON wl.{near} = we.number WHERE we.id = {of}"
                for near, far in (("source", "target"), ("target", "source"))
            ]
        )
        return (
            f"EXISTS (SELECT 1 FROM ({ends}) w WHERE {self._entity('w.source')} AND ("
            f"EXISTS (SELECT 1 FROM main.all_period wp WHERE wp.entity = w.source AND (wp.opened_by = {number} OR wp.closed_by = {number})) "
            f"OR EXISTS (SELECT 1 FROM main.all_link wk CROSS JOIN main.all_link_period wq ON wq.link = wk.number "
            f"AND (wq.opened_by = {number} OR wq.closed_by = {number}) WHERE (wk.source = w.source OR wk.target = w.source) AND {self._ends('wk')})))"
        )

    def reasons_of(self, tx: str = "?") -> tuple[str, str]:
        """Return two statements for the reasons of one transaction (body, reason, 1 if inside): those of operations, and those of links outside."""
        done = (
            f"SELECT r.body, {_REASON.format('b')} AS reason, {self.is_on_inside('r')} AS is_inside FROM main.all_operation r "
            f"CROSS JOIN main.body b ON b.number = r.body WHERE r.tx = {tx} AND +r.number < {SPAN}"
        )
        claimed = (
            f"SELECT c.body, {_REASON.format('b')} AS reason, 0 AS is_inside FROM main.all_operation r CROSS JOIN main.all_claim c ON c.operation = r.number "
            f"CROSS JOIN main.body b ON b.number = c.body WHERE r.tx = {tx} AND +r.number < {SPAN} AND NOT {self._link('c.link')}"
        )
        return done, claimed


def without_functions(statement: str) -> str:
    """Return a statement of `ScopedRows` for a database that lacks our SQL function: with the condition in its place. It is slower for large transactions."""
    return _HIDDEN.sub(_hidden_reason, statement) if "has_hidden_reason" in statement else statement


def _hidden_reason(call: re.Match[str]) -> str:
    scopes = tuple(call[1].replace("''", "'").split("\n"))
    done, claimed = ScopedRows(scopes).reasons_of("a.tx")
    return (
        f"EXISTS (SELECT 1 FROM ({done} UNION ALL {claimed}) o WHERE o.is_inside = 0 AND o.reason = "
        f"(SELECT {_REASON.format('ob')} FROM main.body ob WHERE ob.number = a.body))"
    )


def add_functions(connection: sqlite3.Connection) -> None:
    """Register the SQL function by which the statements of `ScopedRows` check whether a reason is hidden."""
    connection.create_function("has_hidden_reason", 3, _Reasons(connection))


class _Reasons:
    """Finds the reasons of a transaction that were also given for something outside of some scopes. These are hidden."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = weakref.ref(connection)
        self._statements: dict[str, tuple[str, str]] = {}
        # for large transactions: the numbers of all bodies with reasons (which a rewriting changes), and of the hidden ones
        self._kept: OrderedDict[tuple[str, Instant], tuple[set[int], set[int]]] = OrderedDict()

    def __call__(self, scopes: str, tx: Instant, body: int) -> bool:
        bodies, hidden = self._kept.get((scopes, tx), ((), ()))
        if body in bodies:
            return body in hidden
        if scopes not in self._statements:
            self._statements[scopes] = ScopedRows(tuple(scopes.split("\n"))).reasons_of()
        connection = self._connection()
        assert connection is not None
        found: list[tuple[Any, ...]] = []
        for statement in self._statements[scopes]:
            found += connection.execute(statement, (tx,)).fetchall()
        reasons = {reason for _, reason, is_inside in found if not is_inside} - {None}
        hidden = {number for number, reason, is_inside in found if is_inside and reason in reasons}
        if len(found) >= _LARGE and not getattr(connection, "in_turn", False):
            self._kept[scopes, tx] = {number for number, *_ in found}, hidden
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return body in hidden


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _texts(texts: frozenset[str]) -> str:
    return ", ".join(sorted(map(_text, texts)))
