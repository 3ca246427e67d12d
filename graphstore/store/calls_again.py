"""Makes the calls of a chain again in another store, with the arguments that were given. Ids that the first store chose are chosen again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from graphstore.errors import NotFoundError
from graphstore.ledger.chain import FORGETTING, OF_THE_STORE, UNDO
from graphstore.values import drawn_ids, generated_ids
from graphstore.values.models import Json
from graphstore.values.period import OPEN, instant, moment
from graphstore.write.describing import Amend, Revise
from graphstore.write.given_arguments import Verb
from graphstore.write.recorded_calls import (
    ChainReader,
    LinkSaid,
    RecordedCall,
    RecordedOperation,
    RecordedTransaction,
    RecordedVersion,
)
from graphstore.write.verbs import (
    AddLink,
    AddNode,
    Confirm,
    EndNode,
    Fold,
    Retract,
    Supersede,
    Unlink,
)

if TYPE_CHECKING:
    from graphstore.values.findings import MergeConflict

Line = Any
"""A store, or a branch of one. Their module imports this one."""
_CHOICE = re.compile(r" the (trunk|branch) is followed")
_NOT_SHOWN = "what was called is not in the chain"
_EVENT = (
    "fingerprint", "source", "agent", "metadata", "trace_id", "span_id", "parent_span_id", "ended_at", "sender", "sender_name", "thread",
    "classification", "authorized", "media_path", "media_hash",
)  # fmt: skip


class Skipped(Exception):
    """A call cannot be made again: the message says why."""


class Again:
    """Makes calls again on a line of a store."""

    def __init__(self, made: Line, of: Line, reader: ChainReader) -> None:
        self._made, self._of, self._reader = made, of, reader
        self._verbs: dict[str, Callable[[RecordedOperation, RecordedCall], Verb[Any]]] = {
            "add_node": self._add_node, "confirm": self._confirm, "revise": self._revise, "amend": self._amend, "end": self._end,
            "retract": self._retract, "fold": self._fold, "supersede": self._supersede, "link": self._link, "unlink": self._unlink,
        }  # fmt: skip

    def begin(self, line: Line, recorded: RecordedTransaction) -> None:
        """Begin with the calls of a transaction on a line."""
        self._line, self._recorded = line, recorded

    def call(self, call: RecordedCall) -> None:
        """Make a call again. Raises what the verb raises, Skipped for one that the chain does not show."""
        op = call.first
        verb = self._verbs.get(op.verb)
        links = {link.sentence: link.id for each in call.ops for link in each.links}
        with drawn_ids.given(self._made_by(call), links):
            if verb is not None:
                self._line._perform(verb(op, call))
            elif op.verb == "resolve":
                self._resolve(op)
            elif op.verb == "record_event":
                self._line.record_event(**self._event(op))
            elif op.verb in OF_THE_STORE or op.verb.startswith("set_") or self._settings():
                self._of_the_store(op)
            else:
                raise Skipped(_NOT_SHOWN)

    def alone(self, calls: list[RecordedCall]) -> None:
        """Make calls again that are a transaction of their own."""
        recorded, op = self._recorded, calls[0].first
        if recorded.is_bulk:
            self._bulk(calls)
            return
        before = self._line._author
        self._line._author = recorded.author
        reason = op.reason if op.reason is not None else recorded.reason
        try:
            self._one(op, calls, reason)
        finally:
            self._line._author = before

    def _one(self, op: RecordedOperation, calls: list[RecordedCall], reason: str | None) -> None:
        made, line = self._made, self._line
        if op.verb == UNDO:
            made_at = [instant(call.first.subject) for call in calls]
            known = [at for at in made_at if self._is_known(at)]
            if not known:
                raise Skipped("the transaction that was undone is not there")
            if len(made_at) == 1:
                line.undo(moment(known[0]), reason=reason or "erased")
            else:
                line.undo(since=moment(min(known)), reason=reason or "erased")
        elif op.verb == "branch":
            _, name, fork, *parent = self._branches()
            of = made.on(parent[0]) if parent else made
            made._begin(name, instant(fork), reason, getattr(of, "name", None))
        elif op.verb == "delete_branch":
            made.delete_branch(op.subject, reason=reason)
        elif op.verb == "merge":
            if not made.merge(op.subject, decide=_decided(calls), reason=reason).merged:
                raise Skipped("it has other conflicts without what is omitted")
        elif op.verb == "pull":
            if not made.on(op.subject).pull(decide=_decided(calls), reason=reason).merged:
                raise Skipped("it has other conflicts without what is omitted")
        elif op.verb in FORGETTING:
            self._forget(op.verb, [call.first.subject for call in calls], reason)

    def _is_known(self, tx: int) -> bool:
        rows = self._line._core.rows.database.rows("SELECT 1 FROM operation WHERE tx = ? LIMIT 1", (tx,))
        return bool(rows)

    def _branches(self) -> list[Any]:
        return next(list(each) for head in self._recorded.heads for each in head.get("branches", ()))

    def _forget(self, verb: str, names: list[str], reason: str | None) -> None:
        known = []
        for name in names:
            with suppress(NotFoundError):
                if self._made._chosen([name])[name] != FORGETTING[verb]:
                    known.append(name)
        if known:
            self._made._forget(verb, known, reason, self._recorded.author)

    # ------------------------------------------------------------------ what was given

    def _made_by(self, call: RecordedCall) -> list[str]:
        """Return the ids of the nodes and events that a call made."""
        subjects = (op.subject for op in call.ops if op.subject in self._recorded.entities)
        return list(dict.fromkeys(subjects))

    def _settings(self) -> list[Json]:
        return [each for head in self._recorded.heads for each in head.get("settings", ())]

    def _bounds(self, op: RecordedOperation, periods: Iterable[tuple[str, str | None]] = ()) -> Json:
        """Return the bounds that were given. Release 0.1 did not record them: there they are those of what was left."""
        given: Json = {}
        args = op.args
        if not self._recorded.has_arguments:
            starts = list(periods)
            if starts:
                given["valid_from"] = min(start for start, _ in starts)
                stops = [stop for _, stop in starts]
                if None not in stops:
                    given["valid_to"] = max(str(stop) for stop in stops)
            return given
        for name in ("valid_from", "valid_to"):
            if name in args:
                given[name] = moment(OPEN) if args[name] is None else args[name]
        return given

    def _version(self, op: RecordedOperation) -> RecordedVersion:
        found = next((each for each in op.versions.values() if each.id == op.subject), None)
        if found is None and "described" in op.held:
            return RecordedVersion(op.subject, 0, op.held["described"])
        if found is None and op.is_forgotten:
            return RecordedVersion(op.subject, 0, None)
        if found is None:
            raise Skipped("nothing of it was stored: it came and went in one transaction")
        return found

    def _entity(self, id: str) -> list[Any]:
        entity = self._reader.entities.get(id)
        if entity is None:
            raise Skipped(_NOT_SHOWN)
        return entity

    def _named(self, op: RecordedOperation) -> Json:
        """Return the ids that a node was given, by kind of link."""
        return {name: op.args[name] for name in ("supersedes", "corrects", "derived_from") if name in op.args}

    # ------------------------------------------------------------------ the verbs

    def _add_node(self, op: RecordedOperation, call: RecordedCall) -> AddNode:
        version = self._version(op)
        kind, key, scope = self._entity(op.subject)[1:4]
        own_id = key is None or bool(op.args.get("id")) or not generated_ids.is_one(op.subject)
        return AddNode(
            kind, id=op.subject if own_id else None, key=key, scope=scope, reason=op.reason,
            **_described(_shown(version)), **self._bounds(op, version.periods), **self._named(op),
        )  # fmt: skip

    def _confirm(self, op: RecordedOperation, call: RecordedCall) -> Verb[Any]:
        if op.args.get("verb") != "add_node":
            reason = op.reason or self._recorded.reason or "erased"
            return Confirm(op.subject, reason, op.held.get("source"), op.args.get("if_number"))
        kind, key, scope = self._entity(op.subject)[1:4]
        body = {**self._stood(op), **op.held}
        given: Json = {"content": {}} | {name: value for name, value in body.items() if value is not None}
        return AddNode(
            kind, key=key, scope=scope, reason=op.reason,
            **_described(given), **self._bounds(op), **self._named(op),
        )  # fmt: skip

    def _stood(self, op: RecordedOperation) -> Json:
        """Return what stood of a value when it was said again, in the store that is asked."""
        of = self._of if self._recorded.branch is None else self._of.on(self._recorded.branch)
        at = moment(self._recorded.tx)
        valid = op.args.get("valid_from") or at
        with suppress(NotFoundError):
            node = of.as_of(valid=valid, tx=at).node(op.subject)
            return {
                "content": node.content, "tags": list(node.tags) or None, "source": node.source, "text": None,
                "trigger": node.trigger,
            }  # fmt: skip
        raise Skipped(_NOT_SHOWN)

    def _revise(self, op: RecordedOperation, call: RecordedCall) -> Revise:
        version = self._version(op)
        body, args = _shown(version), op.args
        says_source = args.get("source") or (not self._recorded.has_arguments and "source" in body)
        return Revise(
            op.subject, body["content"], reason=op.reason, trigger=body.get("trigger", "initial"), text=body.get("text"),
            source=body.get("source") if says_source else None, tags=body.get("tags", ()) if args.get("tags") else None,
            minor=bool(args.get("minor")), if_number=args.get("if_number"), **self._bounds(op, version.periods),
        )  # fmt: skip

    def _amend(self, op: RecordedOperation, call: RecordedCall) -> Amend:
        source = None
        if op.args.get("source"):
            source = next((_shown(each).get("source") for each in op.versions.values()), None)
        patch = op.held.get("patch")
        if patch is None:
            if self._recorded.has_arguments and not op.is_forgotten:
                raise Skipped(_NOT_SHOWN)
            patch = _shown(self._version(op))["content"]
        number = op.args.get("if_number")
        return Amend(op.subject, patch, reason=op.reason, source=source, if_number=number, **self._bounds(op))

    def _end(self, op: RecordedOperation, call: RecordedCall) -> EndNode:
        return EndNode(op.subject, op.args.get("at"), op.reason, op.args.get("if_number"))

    def _retract(self, op: RecordedOperation, call: RecordedCall) -> Retract:
        reason = op.reason or self._recorded.reason or "erased"
        return Retract(op.subject, reason=reason, if_number=op.args.get("if_number"), **self._bounds(op))

    def _fold(self, op: RecordedOperation, call: RecordedCall) -> Fold:
        return Fold(op.args.get("members", ()), op.subject, op.reason)

    def _supersede(self, op: RecordedOperation, call: RecordedCall) -> Supersede:
        olds = [each.subject for each in call.ops]
        said = next((each for each in op.links if each.sentence[1:] == ("supersedes", olds[0])), None)
        if said is None and "by" in op.args:
            said = LinkSaid("", (op.args["by"], "supersedes", olds[0]))
        if said is None:
            known = [
                each for each in self._reader.links.values() if each.sentence[1:] == ("supersedes", olds[0])
            ]
            if not known:
                raise Skipped(_NOT_SHOWN)
            said = known[-1]
        since, number = op.args.get("valid_from"), op.args.get("if_number")
        return Supersede(olds, said.sentence[0], op.reason, since, number, said.created_by)

    def _link(self, op: RecordedOperation, call: RecordedCall) -> AddLink:
        said: LinkSaid | None = next((each for each in op.links if each.id == op.subject), None)
        said = said or self._reader.links.get(op.subject)
        if said is None:
            raise Skipped(_NOT_SHOWN)
        source, kind, target = said.sentence
        reason = said.body.get("reason")
        bounds = self._bounds(op, said.periods)
        return AddLink(
            source, kind, target, reason=None if reason == self._recorded.reason and op.reason is None else reason,
            strength=said.strength, confidence="inferred" if said.inferred else "explicit", created_by=said.created_by,
            history=said.history, metadata=said.body.get("metadata"), id=None if generated_ids.is_one(said.id) else said.id, **bounds,
        )  # fmt: skip

    def _unlink(self, op: RecordedOperation, call: RecordedCall) -> Unlink:
        if "source" in op.args:
            named = {name: op.args[name] for name in ("source", "kind", "target")}
        else:
            named = {"link_id": op.subject}
        return Unlink(**named, reason=op.reason, **self._bounds(op))

    def _resolve(self, op: RecordedOperation) -> None:
        said = next((each for each in op.links if each.id == op.subject), None)
        if said is None:
            raise Skipped(_NOT_SHOWN)
        ends = {said.sentence[0], said.sentence[2]}
        for found in self._line.contradictions():
            if {found.source.id, found.target.id} == ends:
                keep = said.body.get("metadata", {}).get("decision", "both")
                self._line.resolve(found, keep=keep, reason=op.reason or self._recorded.reason or "erased")
                return
        raise Skipped("the two do not contradict each other without what is omitted")

    def _event(self, op: RecordedOperation) -> Json:
        """Return the arguments of an event that was reported."""
        version = op.versions.get(1)
        kind = self._entity(op.subject)[1]
        if version is not None:
            body, at = version.body, min((start for start, _ in version.periods), default=None)
            body = {"description": f"erased {op.subject}"} if body is None else body
        else:
            body, at = self._reader.events.get(op.subject), op.seen
            body = (
                {"description": f"erased {op.subject}", "fingerprint": f"erased {op.subject}"}
                if body is None
                else body
            )
            body = {**body, **op.own}
        given: Json = {name: body[name] for name in _EVENT if body.get(name) is not None}
        if op.args.get("id") or (version is not None and not generated_ids.is_one(op.subject)):
            given["id"] = op.subject
        if "related_to" in op.args:
            given["related_to"] = op.args["related_to"]
        return {
            "type": kind, "description": body.get("description", ""), "origin": body.get("origin", "agent"), "occurred_at": at, **given,
        }  # fmt: skip

    def _of_the_store(self, op: RecordedOperation) -> None:
        """Set what an operation set: a setting, a kind, a snapshot."""
        kinds = [each for head in self._recorded.heads for each in head.get("kinds", ())]
        if op.verb == "define_kind":
            spec = next(each for each in kinds if each.get("name") == op.subject)
            names = ("inverse", "symmetric", "causal", "acyclic", "rests")
            self._line.define_kind(op.subject, **{name: spec[name] for name in names if name in spec})
        elif op.verb == "promote_kind":
            self._line.promote_kind(op.subject)
        elif op.verb == "set_trust":
            self._line.set_trust(next(each["trust"] for each in self._settings() if "trust" in each))
        else:
            self._line.keep_settings(
                op.verb, {name: value for each in self._settings() for name, value in each.items()}
            )

    # ------------------------------------------------------------------ many rows

    def _bulk(self, calls: list[RecordedCall]) -> None:
        """Load the rows of a bulk load again, in one transaction."""
        tables: dict[str, list[Json]] = {"nodes": [], "versions": [], "events": [], "links": []}
        rows: dict[str, Callable[[RecordedOperation], Json]] = {
            "record_event": self._event,
            "link": self._link_row,
        }
        for call in calls:
            op = call.first
            if op.verb in rows:
                tables["events" if op.verb == "record_event" else "links"].append(rows[op.verb](op))
            elif op.verb in ("add_node", "revise"):
                tables["versions"].append(self._version_row(op))
                if op.verb == "add_node":
                    _, kind, key, scope = self._entity(op.subject)
                    tables["nodes"].append({"id": op.subject, "kind": kind, "key": key, "scope": scope})
        links = {link.sentence: link.id for call in calls for op in call.ops for link in op.links}
        with drawn_ids.given([id for call in calls for id in self._made_by(call)], links):
            before = self._line._author
            self._line._author = self._recorded.author
            try:
                self._line.bulk_load(
                    nodes=tables["nodes"] or None, versions=tables["versions"] or None,
                    events=tables["events"] or None, links=tables["links"] or None,
                )  # fmt: skip
            finally:
                self._line._author = before

    def _version_row(self, op: RecordedOperation) -> Json:
        version = self._version(op)
        row = {
            "node_id": op.subject,
            **{name: value for name, value in _shown(version).items() if name != "salt"},
        }
        starts = [start for start, _ in version.periods]
        row["valid_from"] = op.args.get("valid_from") or min(starts, default=None)
        if "valid_to" in op.args:
            row["valid_to"] = moment(OPEN) if op.args["valid_to"] is None else op.args["valid_to"]
        return {**row, "reason": op.reason}

    def _link_row(self, op: RecordedOperation) -> Json:
        said = next((each for each in op.links if each.id == op.subject), None)
        if said is None:
            raise Skipped(_NOT_SHOWN)
        source, kind, target = said.sentence
        row = {
            "source": source, "kind": kind, "target": target, "strength": said.strength, "created_by": said.created_by,
            "confidence": "inferred" if said.inferred else "explicit", **said.body, **self._bounds(op, said.periods),
        }  # fmt: skip
        row.pop("salt", None)
        return row if generated_ids.is_one(said.id) else {**row, "id": said.id}


def _described(body: Json) -> Json:
    """Return the arguments that a body gives."""
    return {name: body[name] for name in ("content", "text", "tags", "source", "trigger") if name in body}


def _shown(version: RecordedVersion) -> Json:
    """Return the body of a version; of a forgotten one a content that differs from every other."""
    if version.body is None:
        return {"content": {"erased": f"{version.id}-v{version.number}"}}
    return version.body


def _decided(calls: list[RecordedCall]) -> Callable[[MergeConflict], str | None]:
    """Return what decides the conflicts of a merge as they were decided."""
    chosen: dict[str, str] = {}
    for call in calls:
        for op in call.ops:
            found = _CHOICE.search(op.reason or "")
            if op.verb in ("decide", "decide_link") and found:
                chosen[op.subject] = found[1]
    return lambda conflict: chosen.get(conflict.id)
