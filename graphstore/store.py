"""The only writer: verbs that decide on the resident index and commit one line of the journal each.

The way of a write: check → decide on periods → one line, synced → the index keeps it → the graph tables follow when asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphstore import bulk, inputs, retention, sweeping, verbs
from graphstore.act import Act, new_id
from graphstore.branching import Branching
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.inputs import (
    Thing,
    event_of,
    id_of,
    ids,
    optional_text,
    text_of,
)
from graphstore.models import Contradiction, Link, Node, Recorded
from graphstore.period import (
    BEGINNING,
    TimeLike,
    instant,
    moment,
)
from graphstore.proposals import Extractor
from graphstore.recording import Recording, Report
from graphstore.resolving import resolve
from graphstore.slots import TRUST, confirm
from graphstore.sweeping import Swept
from graphstore.transacting import Clock, Progress
from graphstore.vocabulary import new_kind

__all__ = ["Clock", "GraphStore", "Progress"]


class GraphStore(Branching):
    """An open store. Its reads are those of the view of now; its verbs are the only way to write. Use `graphstore.open`."""

    # ------------------------------------------------------------------ verbs: nodes

    def add_node(
        self,
        kind: str,
        content: Mapping[str, Any],
        *,
        id: str | None = None,
        key: str | None = None,
        text: str | None = None,
        tags: Iterable[str] = (),
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        scope: str = "",
        supersedes: str | Iterable[str] = (),
        corrects: str | Iterable[str] = (),
        derived_from: str | Iterable[str] = (),
        reason: str | None = None,
        source: str | None = None,
        trigger: str = "initial",
    ) -> Node:
        """Know something new, from `valid_from` (default: now) on. What it supersedes ends where it begins.

        With a `key` it is the value of that slot: it closes the value that holds there, and ends where the next one begins. The same value again (without
        an `id`) is the node that says so already, confirmed. Raises ConflictError when the id is known or the source is trusted less than what it
        would close; InvalidError for bad input.
        """
        named = {"supersedes": supersedes, "corrects": corrects, "derived_from": derived_from}
        with self._verb() as work:
            return verbs.add_node(
                Act(self._core, work),
                kind,
                content,
                id,
                key,
                text,
                tags,
                valid_from,
                valid_to,
                scope,
                named,
                reason,
                source,
                trigger,
            )

    def revise(
        self,
        id: str,
        content: Mapping[str, Any],
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
        trigger: str = "user_feedback",
        source: str | None = None,
        text: str | None = None,
        tags: Iterable[str] | None = None,
    ) -> Node:
        """Describe a node better: over all the valid time it has, or over the period given, gaps included.

        `tags=None` keeps the tags of the version described anew; `text` belongs to the description and is not kept. Raises NotFoundError for an
        unknown id, ConflictError when the node has no validity and no period is given.
        """
        with self._verb() as work:
            return verbs.revise(
                Act(self._core, work), id, content, valid_from, valid_to, reason, trigger, source, text, tags
            )

    def end(self, id: str, *, at: TimeLike | None = None, reason: str | None = None) -> None:
        """It was true until `at` (default: now) and no longer. Raises NotFoundError when nothing is believed from there on."""
        with self._verb() as work:
            verbs.end(Act(self._core, work), id, at, reason)

    def retract(
        self, id: str, *, valid_from: TimeLike | None = None, valid_to: TimeLike | None = None, reason: str
    ) -> None:
        """Stop believing `id` held over the period (default: all of it). Earlier beliefs stay readable by `as_of(tx=…)`.

        Raises NotFoundError when nothing is believed of it there; InvalidError for a part of an event.
        """
        text_of("reason", reason)
        with self._verb() as work:
            verbs.retract(Act(self._core, work), id, valid_from, valid_to, reason)

    def fold(
        self,
        members: str | Thing | Iterable[str | Thing],
        *,
        into: str | Node | Mapping[str, Any],
        reason: str | None = None,
    ) -> Node:
        """Sum up several things, given themselves or by id, in one: a node that is there, or a new one of kind `summary` with this content.
        It is `derived_from` each.

        The members stay as they are. Retracting the summary undoes it. Raises NotFoundError for an unknown id, InvalidError for no members.
        """
        names = ids("members", members)
        if not names:
            raise InvalidError("fold() of nothing. Give the ids of what is summed up.")
        with self._verb() as work:
            act = Act(self._core, work)
            known = into if isinstance(into, (str, Node)) else self.add_node("summary", into, reason=reason)
            ent = act.known(id_of(known), node=True)
            derived = {"derived_from": [act.known(name) for name in names]}
            before = work.point()
            op = work.op("fold", act.index.names[ent], optional_text("reason", reason))
            verbs.link_named(act, ent, derived, work.tx, reason, op)
            if len(act.index.k_link) == before.mark.link_rows:
                work.back(before)  # said just so before
            found = act.sight().thing(ent)
            assert isinstance(found, Node)
            return found

    def confirm(self, id: str, *, reason: str, source: str | None = None) -> None:
        """It still holds: counted, and what it rests on shakes it no more. From another source than its own it is also an event that `supports` it.

        Raises NotFoundError for an unknown id or one of which nothing is believed.
        """
        text_of("reason", reason)
        with self._verb() as work:
            act = Act(self._core, work)
            index = act.index
            ent = act.known(id)
            if not index.now_of[ent]:
                raise NotFoundError(
                    f"nothing is believed of {index.names[ent]!r}: there is nothing to confirm."
                )
            now = index.find(ent, work.tx, work.tx)
            row = now if now >= 0 else index.now_of[ent][-1]
            confirm(act, row, reason, optional_text("source", source))

    # ------------------------------------------------------------------ verbs: links

    def supersede(
        self, old: str, *more: str, by: str, reason: str | None = None, valid_from: TimeLike | None = None
    ) -> list[Link]:
        """The world moved on: each old was true until `by` began (or until `valid_from`). One link for each, `by supersedes old`.

        Raises NotFoundError for an unknown id; ConflictError for a cycle, or when nothing is believed of `by`.
        """
        with self._verb() as work:
            return verbs.supersede(Act(self._core, work), (old, *more), by, reason, valid_from)

    def link(
        self,
        source: str,
        kind: str,
        target: str,
        *,
        reason: str | None = None,
        strength: int | None = None,
        confidence: str = "explicit",
        created_by: str = "user",
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Link:
        """Say `source kind target`, from `valid_from` (default: now) on. The same link again is the same link.

        Raises NotFoundError for an unknown end; InvalidError for an unknown kind, a self-link, a cause after its effect; ConflictError for
        a cycle, or a link that is there with other attributes.
        """
        with self._verb() as work:
            act = Act(self._core, work)
            row = verbs.link_row(
                act,
                source,
                kind,
                target,
                reason=reason,
                strength=strength,
                confidence=confidence,
                created_by=created_by,
                valid_from=valid_from,
                valid_to=valid_to,
                metadata=metadata,
                id=id,
            )
            return act.sight().link(row)

    def unlink(
        self,
        link_id: str,
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
    ) -> None:
        """Stop believing a link held over the period (default: all of it). A supersession gives back the validity it took there.

        Raises NotFoundError for an unknown link, or when nothing is believed of it there.
        """
        with self._verb() as work:
            verbs.unlink(Act(self._core, work), link_id, valid_from, valid_to, reason)

    def resolve(self, contradiction: Contradiction, *, keep: str, reason: str) -> Contradiction:
        """Decide a contradiction: keep one id, the other is retracted and corrected by it; or `keep="both"`. The decision stays with their link.

        Raises InvalidError for another `keep`; ConflictError when it is decided already, or when one of the two no longer stands.
        """
        text_of("reason", reason)
        with self._verb() as work:
            return resolve(self._core, work, contradiction, keep, reason)

    def define_kind(
        self,
        name: str,
        *,
        inverse: str | None = None,
        symmetric: bool = False,
        causal: bool = False,
        acyclic: bool = False,
    ) -> None:
        """Add a link kind to the store's vocabulary. Its inverse name defaults to `{name}_of`. Saying it again changes nothing.

        Raises InvalidError for a taken name, or for one that is defined otherwise: what a kind means never changes.
        """
        with self._verb() as work:
            vocabulary = self._core.vocabulary
            kind = new_kind(
                name,
                inverse=inverse,
                symmetric=symmetric,
                causal=causal,
                acyclic=acyclic,
                vocabulary=vocabulary,
            )
            if name in vocabulary.kinds:
                return  # defined just so before
            work.op("define_kind", name)
            self._core.index.kinds.append(
                {
                    "name": name,
                    "inverse": kind.inverse,
                    "symmetric": symmetric,
                    "causal": causal,
                    "acyclic": acyclic,
                }
            )
            vocabulary.add(kind)

    def promote_kind(self, name: str) -> None:
        """Give a link kind a relationship table of its own in the graph tables. They are rebuilt on next use."""
        with self._verb() as work:
            plain = self._core.vocabulary.canonical(name)
            index = self._core.index
            if self._core.vocabulary.kinds[plain].table or plain in index.promoted:
                raise ConflictError(f"link kind {plain!r} has its own table already.")
            work.op("promote_kind", plain)
            index.promoted.append(plain)

    # ------------------------------------------------------------------ verbs: events

    def record_event(
        self,
        type: str = "",
        description: str = "",
        *,
        id: str | None = None,
        occurred_at: TimeLike | None = None,
        source: str | None = None,
        origin: str = "agent",
        agent: str | None = None,
        related_to: str | Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        fingerprint: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        parent_span_id: str | None = None,
        sender: str | None = None,
        sender_name: str | None = None,
        thread: str | None = None,
        classification: str | None = None,
        authorized: bool | None = None,
        media_path: str | None = None,
        media_hash: str | None = None,
        **unknown: Any,
    ) -> Recorded:
        """Record something that happened at `occurred_at` (default: now). An unknown `related_to` is left out with a warning.

        Without an id, the fingerprint of an event that stands makes it an occurrence of that event: `is_new` is false, its `count` grows. The
        same id with the same content is the same event; with other content it is a ConflictError. From `sender` on: fields of a message, see
        `timeline.record_message`. Raises InvalidError, with the fields there are.
        """
        if unknown:
            raise InvalidError(f"unknown field {min(unknown)!r} of an event. {inputs.event_fields()}")
        type, body = event_of(
            type,
            description,
            origin,
            metadata,
            authorized,
            source=source,
            agent=agent,
            fingerprint=fingerprint,
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent_span_id,
            sender=sender,
            sender_name=sender_name,
            thread=thread,
            classification=classification,
            media_path=media_path,
            media_hash=media_hash,
        )
        at = None if occurred_at is None else instant(occurred_at, "occurred_at")
        related = tuple(ids("related_to", related_to or ()))
        with self._verb() as work:
            act = Act(self._core, work)
            return Recording(act).record(Report(type, body, id, at, related))

    def bulk_load(
        self,
        *,
        nodes: Any = None,
        versions: Any = None,
        events: Any = None,
        links: Any = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Load many rows: Arrow tables, DataFrames or iterables of dicts, with the same checks as the verbs.

        Without a `tx_from` column it is one transaction; with one, ascending transactions, one for each instant. Gives the counts loaded.
        Raises what the verbs raise, with the row's number; nothing is then kept of the transaction it is in.
        """
        return bulk.load(self, nodes=nodes, versions=versions, events=events, links=links, progress=progress)

    # ------------------------------------------------------------------ verbs: forgetting

    def evict(
        self,
        *,
        before: TimeLike | None = None,
        larger_than: int | None = None,
        kinds: str | Iterable[str] | None = None,
        keep_audit: bool = True,
        ids: Iterable[str] | None = None,
        reason: str | None = None,
    ) -> list[str]:
        """Forget the contents of what is too old to keep, in every file of the store; tombstones stay, with the place in its trace of an
        event. Gives the ids, oldest first.

        `before`: events that happened last before then, and nodes of the named `kinds` that ended before then. `larger_than`: the oldest of these until the
        journal is smaller than so many bytes. `ids`: these things, whatever their age. `keep_audit=False` removes the tombstones too. Views of earlier
        coordinates lose the contents as well. Raises InvalidError when none of the three is given, or inside a transaction.
        """
        wanted = None if kinds is None else frozenset(inputs.ids("kinds", kinds))
        cut = None if before is None else instant(before, "before")
        most = inputs.whole_number("larger_than", larger_than)
        if before is None and larger_than is None and ids is None:
            raise InvalidError(
                "evict() without before=, larger_than= or ids= would forget everything. Give one of them."
            )
        with self._by_itself("evict()"):
            if ids is not None:
                there = ("",) if keep_audit else ("", "evicted")
                chosen = self._chosen(inputs.ids("ids", ids))
                names = [name for name, word in chosen.items() if word in there]
                if most is not None:
                    index, over = self._core.index, self._core.journal.size() - most
                    ents = [index.ids[name] for name in names if name in index.ids]
                    names = [index.names[ent] for ent in retention.enough(index, ents, over, keep_audit)]
            else:
                names = self._too_old(wanted, cut, most, keep_audit)
            if names and keep_audit:
                self._forget("evict", names, reason)
            elif names:
                self._purge(set(names), reason)
            return names

    def evict_old(self) -> list[str]:
        """Evict the events older than the days the store keeps, if it keeps any. Gives their ids. Each opening for writing does it."""
        days = self.retention["days"]
        if days is None:
            return []
        cut = max(self._now() - days * retention.DAY, BEGINNING)
        return self.evict(before=moment(cut), reason=f"older than {days} days")

    def erase(self, id: str, *, reason: str) -> None:
        """Forget what must not be kept: the content of one thing leaves every file of the store; its tombstone and the reason stay.

        `id` is the whole id. Raises NotFoundError for an unknown one, InvalidError inside a transaction.
        """
        text_of("reason", reason)
        with self._by_itself("erase()"):
            if self._chosen([text_of("id", id)]) != {id: "erased"}:
                self._forget("erase", [id], reason)

    def set_trust(self, ranks: Mapping[str, int]) -> None:
        """Rank source classes (what stands before the first `:` of a `source`): one that ranks lower may not close the value of a slot that a higher one gave.

        A class without a rank, and no source, rank 0. Kept in the store. Raises InvalidError for a rank that is no whole number.
        """
        wanted = inputs.json_object("ranks", ranks)
        for name, rank in wanted.items():
            if isinstance(rank, bool) or not isinstance(rank, int):
                raise InvalidError(
                    f"rank {rank!r} of {name!r} is no whole number. Give one, higher for more trust."
                )
        if wanted != self.trust:
            self._keep("set_trust", TRUST, wanted)

    @property
    def trust(self) -> dict[str, int]:
        """The ranks of source classes."""
        return dict(self._core.setting(TRUST) or {})

    def sweep(self, extractor: Extractor | None = None, *, since: TimeLike | None = None) -> Swept:
        """Ask an extractor for links between what was told since the last sweep (or `since`) and all else, write what is admitted as one
        transaction, and do the upkeep. Without an extractor only that. One that raises leaves nothing, and the next sweep asks again.
        """
        return sweeping.sweep(self, extractor, since, self.evict_old)

    def set_retention(self, *, days: int | None = None, bytes: int | None = None) -> None:
        """Keep events for so many days, and the journal below so many bytes; None: no limit. Kept in the store, acted on at each opening for writing,
        and the size after each commit."""
        wanted = {
            "days": inputs.whole_number("days", days),
            "bytes": inputs.whole_number("bytes", bytes),
        }
        if wanted != self.retention:
            self._keep("set_retention", retention.RETENTION, wanted)

    @property
    def retention(self) -> dict[str, int | None]:
        """What the store keeps: `days` and `bytes`, None for no limit."""
        kept: dict[str, int | None] | None = self._core.setting(retention.RETENTION)
        return dict(kept) if kept else {"days": None, "bytes": None}

    def _new_id(self) -> str:
        return new_id(self._core.index)
