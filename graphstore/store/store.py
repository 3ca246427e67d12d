"""Write to a store: each verb decides on the rows that it reads and commits one transaction.

A write is checked and decided on periods. It appends one line to the chain, and the rows made of it, and syncs them. The graph tables follow at the next query.

A branch is a line of belief that forks from the trunk at an instant, in the same journal. Its records are visible only there. It costs one journal line. Its rows answer
its reads, and its verbs decide on them. The store creates its branches, and both share reads and verbs, so all three classes are here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.graph.graphs import Graphs
from graphstore.ledger import branch_ledger, branch_records, chain_import, other_chains, word_rows
from graphstore.ledger.chain import RETENTION, Verbatim
from graphstore.read import happened
from graphstore.read import ids as read_ids
from graphstore.store import bulk, forgetting, other_stores, sweeping
from graphstore.store.whole_store import WholeStore
from graphstore.values import findings, fingerprints, inputs, words
from graphstore.values.findings import WarnedNode
from graphstore.values.inputs import Thing, event_of, id_of, ids, printable, text_of
from graphstore.values.models import Link, Node
from graphstore.values.period import BEGINNING, MICROSECOND, Instant, TimeLike, exactly, moment
from graphstore.values.vocabulary import Vocabulary, new_kind
from graphstore.view import working_sight, write_warnings
from graphstore.view.core_state import Core
from graphstore.view.view import Reader, View
from graphstore.write import act as acts
from graphstore.write import (
    carrying,
    changes_since,
    describing,
    joining,
    merge_plan,
    recording,
    resolving,
    retention,
    undoing,
    verbs,
)
from graphstore.write.trust import SET_TRUST, TRUST, Trust
from graphstore.write.writer import Clock, Progress

if TYPE_CHECKING:
    from graphstore.graph.result import Result
    from graphstore.ledger.branch_records import BranchRecord, BranchRecords
    from graphstore.ledger.chain_import import ChainImport
    from graphstore.ledger.other_chains import OtherChain
    from graphstore.store.counterfactual import Counterfactual
    from graphstore.store.judging import Judge
    from graphstore.store.proposals import Extractor
    from graphstore.store.sweeping import Swept
    from graphstore.values.findings import (
        BranchInfo,
        Change,
        Contradiction,
        Decide,
        Forgetting,
        Merge,
        Problem,
        Recorded,
        Verification,
        ViewDiff,
    )
    from graphstore.write.given_arguments import Verb
    from graphstore.write.retention import KindContent

T = TypeVar("T")
__all__ = ["Branch", "Clock", "GraphStore", "Progress", "Store"]


class Store(WholeStore):
    """What a store and its branches both can do. Its reads are those of the view of now; its verbs are the only way to write."""

    @property
    def _trunk(self) -> GraphStore:
        trunk = self._lines[0]
        assert isinstance(trunk, GraphStore)
        return trunk

    def _perform(self, verb: Verb[T]) -> T:
        """Perform a verb, in the open transaction or in one of its own."""
        with self.verb(is_narrow=True) as work:
            return verb.perform(acts.Act(self._core, work))

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
        warn: bool = False,
    ) -> Node | WarnedNode:
        """Record something new, valid from `valid_from` (default: now) on. What it supersedes ends where it begins.

        With a `key` it is the value of that slot: it closes the value that holds there, and ends where the next one begins. The same value again (without
        an `id`) confirms the existing node. `warn`: return a node that has also what stands already and says the same (`similar`) or may contradict it
        (`maybe_contrary`, see `warnings_of`); it is written in any case. Raises ConflictError when the id is known or the writer is trusted less than who recorded what it
        would close; InvalidError for bad input.
        """
        once = inputs.read_once
        verb = verbs.AddNode(
            kind, content, id, key, text, tags, valid_from, valid_to, scope,
            once(supersedes), once(corrects), once(derived_from), reason, source, trigger,
        )  # fmt: skip
        if not isinstance(warn, bool):
            raise InvalidError(f"warn must be True or False, got {warn!r}.")
        if not warn:
            return self._perform(verb)
        with self.verb(is_narrow=True) as work:
            node, tx = verb.perform(acts.Act(self._core, work)), moment(work.tx)
        return write_warnings.warned(self, [node], tx)[0]

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
        minor: bool = False,
        if_number: int | None = None,
    ) -> Node:
        """Put a whole description over all the valid time a node has, or over the given period, gaps included; `amend` changes single fields.

        Only the part that says something else is written; where nothing does, nothing is written, and the node is returned as it stands. Another
        content shakes what was said to rest on it before, unless the change is `minor`. `tags=None` and `source=None` keep what there was; `text` belongs
        to the description and is not kept. `valid_to=graphstore.OPEN` gives it an open end. Raises NotFoundError for an unknown id; ConflictError
        when it has no validity and no period is given, or when another version than `if_number` holds now.
        """
        verb = describing.Revise(
            id, content, valid_from, valid_to, reason, trigger, source, text, tags, minor, if_number
        )
        return self._perform(verb)

    def amend(
        self,
        id: str,
        patch: Mapping[str, Any],
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
        source: str | None = None,
        if_number: int | None = None,
    ) -> Node:
        """Change top-level fields of a node's content over what is believed of it in the period (default: all of it), and nowhere else.

        Every description there keeps its other fields, its text, tags and period; gaps stay gaps. A None is a value: no field is removed. What says so
        already is left alone. Raises NotFoundError when nothing is believed of it there; InvalidError for a `valid_from` before its start; ConflictError when another version than `if_number` holds now.
        """
        return self._perform(describing.Amend(id, patch, valid_from, valid_to, reason, source, if_number))

    def end(
        self, id: str, *, at: TimeLike | None = None, reason: str | None = None, if_number: int | None = None
    ) -> None:
        """Record that it was true until `at` (default: now) and no longer.

        Raises NotFoundError when nothing is believed from there on; ConflictError when another version than `if_number` holds now.
        """
        self._perform(verbs.EndNode(id, at, reason, if_number))

    def retract(
        self,
        id: str,
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str,
        if_number: int | None = None,
    ) -> None:
        """Stop believing `id` held over the period (default: all of it). Earlier beliefs stay readable by `as_of(tx=…)`.

        Raises NotFoundError when nothing is believed of it there; InvalidError for a part of an event; ConflictError when another version than
        `if_number` holds now.
        """
        self._perform(verbs.Retract(id, valid_from, valid_to, reason, if_number))

    def fold(
        self,
        members: str | Thing | Iterable[str | Thing],
        *,
        into: str | Node | Mapping[str, Any],
        reason: str | None = None,
    ) -> Node:
        """Sum up several things, given as values or ids, in one node: an existing one, or a new one of kind `summary` with this content.
        It is `derived_from` each as that was (`history=True`): only what never was so shakes it.

        The members stay as they are. Retracting the summary undoes it. Raises NotFoundError for an unknown id, InvalidError for no members.
        """
        return self._perform(verbs.Fold(ids("members", members), into, reason))

    def join(self, id: str | Node, *, into: str | Node, reason: str | None = None) -> Link:
        """Record that two ids are one thing: from this tx on `id` means `into`, in reads and in verbs. Returns the link `into joined_from id`.

        Links of `id` become links of `into`, one between the two goes, and what is stated of `id` where nothing is of `into` is stated of that. Elsewhere
        the content of `into` counts; `history` shows the other. `split` takes it back, as `undo` does. The same join again is the same link.

        Raises NotFoundError for an unknown id; InvalidError for an event, an id with itself, nodes of different kinds or scopes; ConflictError if `id` is
        joined already, one is forgotten, nothing is believed of `into`, `id` has a slot that `into` has not, this transaction
        wrote `id`, or a link would close a cycle.
        """
        return self._perform(joining.Join(id_of(id), id_of(into), reason))

    def split(self, id: str | Node, *, reason: str) -> Node:
        """Take back that `id` was joined into another node: what the join moved is of `id` again. What was recorded of the other node since stays there.

        Raises NotFoundError for an unknown id or one that is not joined.
        """
        name, verb = id_of(id), joining.Split(id_of(id), reason)
        tx = self._join_alone(name)
        if tx is None:
            return self._perform(verb)
        try:
            self.undo(tx, reason=reason)  # exact, where nothing was built on it
        except ConflictError:
            return self._perform(verb)
        found = self.inspect(name).node
        assert isinstance(found, Node)
        return found

    def _join_alone(self, id: str) -> TimeLike | None:
        """Return the tx by which a node is joined into another, if that transaction has nothing else and none is open here; else None."""
        steps = () if self._core.is_worker else self.what_superseded(id).chain[:1]
        tx = steps[0].link.tx_from if steps and steps[0].how == "joined" and steps[0].link else None
        if tx is None:
            return None
        done = [each for each in self.changes(since=tx - MICROSECOND) if each.tx == tx]
        is_alone = [each.verb for each in done].count("join") == 1 and done[0].verb == "join"
        return tx if is_alone and {each.verb for each in done} <= {"join", "supersede", "correct"} else None

    def confirm(
        self, id: str, *, reason: str, source: str | None = None, if_number: int | None = None
    ) -> None:
        """Confirm that it still holds. Earlier falls of what it rests on shake it no more. From another source it is also an event that `supports` it.

        Raises NotFoundError for an unknown id or one of which nothing is believed; ConflictError when another version than `if_number` holds now.
        """
        self._perform(verbs.Confirm(id, reason, source, if_number))

    def undo(
        self,
        tx: TimeLike | Change | None = None,
        *,
        since: TimeLike | Change | None = None,
        reason: str,
        author: str | None = None,
    ) -> Change:
        """Take back one transaction, by its instant or one of its changes: what it opened is closed, and what it closed is open again. Returns the
        operation, itself a transaction; undone in turn, it counts again. `since`: instead, that and every later one (such as all that was written
        under a wrong clock), the newest first, in one transaction; the last operation is returned. `author`: as of `transaction`.

        What the transaction introduced stays known, as retracted. Raises NotFoundError where there is no such transaction; ConflictError, with the
        ids, when something was built on it since or a more trusted source would be taken back; InvalidError inside a transaction. Nothing is written then.
        """
        text_of("reason", reason)
        if (tx is None) == (since is None):
            raise InvalidError(
                "undo takes tx, for one transaction, or since, for that and every later one. Give one of the two."
            )
        core = self._core
        with (
            self._alone("undo()"),
            self._transact(None, author, None) as work,
            core.on_working_set(),
        ):
            if since is not None:
                wanted = since.tx if isinstance(since, findings.Change) else since
                undoing.undo_since(core, work, acts.Act(core, work).time(wanted, "since"), reason)
            else:
                assert tx is not None
                at = acts.Act(core, work).transaction(tx.tx if isinstance(tx, findings.Change) else tx)
                undoing.Undoing(core, work, at).write(reason)
            return working_sight.WorkingSight(core, work.tx, work.tx).change(len(core.index.o_tx) - 1)

    # ------------------------------------------------------------------ verbs: links

    def supersede(
        self,
        old: str,
        *more: str,
        by: str,
        reason: str | None = None,
        valid_from: TimeLike | None = None,
        if_number: int | None = None,
        created_by: str | None = None,
    ) -> list[Link]:
        """The world moved on: each old was true until `by` began (or until `valid_from`). One link for each, `by supersedes old`.
        `created_by`: as of `link`, by default the author if that is an agent (`agent:…`).

        Raises NotFoundError for an unknown id; ConflictError for a cycle, when nothing is believed of `by`, or when another version of the one old
        than `if_number` holds now.
        """
        verb = verbs.Supersede((old, *more), by, reason, valid_from, if_number, created_by)
        return self._perform(verb)

    @overload
    def link(
        self, source: str, kind: str, target: str, *, reason: str | None = None, strength: int | None = None, confidence: str = "explicit",
        created_by: str = "user", valid_from: TimeLike | None = None, valid_to: TimeLike | None = None, metadata: Mapping[str, Any] | None = None,
        id: str | None = None, history: bool = False,
    ) -> Link: ...  # fmt: skip
    @overload
    def link(
        self, source: str, kind: str, target: str, *, also: Iterable[Sequence[str]], reason: str | None = None, strength: int | None = None,
        confidence: str = "explicit", created_by: str = "user", valid_from: TimeLike | None = None, valid_to: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None, history: bool = False,
    ) -> list[Link]: ...  # fmt: skip
    def link(
        self,
        source: str,
        kind: str,
        target: str,
        *,
        also: Iterable[Sequence[str]] | None = None,
        reason: str | None = None,
        strength: int | None = None,
        confidence: str = "explicit",
        created_by: str = "user",
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        history: bool = False,
    ) -> Link | list[Link]:
        """Record `source kind target`, from `valid_from` on (default: now; where one end rests on the other or was caused by it, since that one began).
        The same link again is the same link. `history`: one end was made from the other as that was (a summary, a lesson), so it is shaken only when
        that was never so. `also`: further links, each `(source, target)` of the same kind or `(source, kind, target)`, with the same
        attributes. All are recorded in one transaction, or none is; the answer is then the list of them, the first one first.

        Raises NotFoundError for an unknown end; InvalidError for an unknown kind, a self-link, a cause after its effect, `id` beside `also`;
        ConflictError for a cycle, or an existing link with other attributes.
        """
        sentences = [(source, kind, target), *inputs.sentences(kind, () if also is None else also)]
        if also is not None and id is not None:
            raise InvalidError(f"id {id!r} cannot name several links. Leave it out, or link them one by one.")
        with self.verb() if also is not None else nullcontext():
            links = [
                self._perform(verbs.AddLink(
                    *each, reason, strength, confidence, created_by, valid_from, valid_to, metadata, id, history
                ))
                for each in sentences
            ]  # fmt: skip
        return links[0] if also is None else links

    @overload
    def unlink(
        self,
        link_id: str,
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
    ) -> None: ...
    @overload
    def unlink(
        self,
        *,
        source: str,
        kind: str,
        target: str,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
    ) -> None: ...
    def unlink(
        self,
        link_id: str | None = None,
        *,
        source: str | None = None,
        kind: str | None = None,
        target: str | None = None,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
    ) -> None:
        """Stop believing a link held over the period (default: all of it); or every link that says `source kind target`. A supersession restores the
        validity it took there, and the transition and the contradiction that the store wrote beside it go too.

        Raises NotFoundError for an unknown link, or when nothing is believed of it there; InvalidError unless a link is named in one of the two ways.
        """
        self._perform(verbs.Unlink(link_id, source, kind, target, valid_from, valid_to, reason))

    def resolve(self, contradiction: Contradiction, *, keep: str, reason: str) -> Contradiction:
        """Decide a contradiction: keep one id, the other is retracted and corrected by it; or `keep="both"`. The decision stays with their link.

        Raises InvalidError for another `keep`; ConflictError when it is decided already, or when one of the two no longer stands.
        """
        text_of("reason", reason)
        with self.verb(is_narrow=True) as work:
            return resolving.resolve(self._core, work, contradiction, keep, reason)

    def define_kind(
        self,
        name: str,
        *,
        inverse: str | None = None,
        symmetric: bool = False,
        causal: bool = False,
        acyclic: bool = False,
        rests: Iterable[str] = (),
    ) -> None:
        """Add a link kind to the store's vocabulary. Its inverse name defaults to `{name}_of`. Adding it again changes nothing.

        `rests`: the falls of its target that shake its source, some of superseded, revised, corrected, retracted, ended, evicted, erased and shaky;
        none by default. It says nothing of the world: outside of a transaction it is recorded right after the last one, at the beginning of time in an
        empty store, so that an older source may still be replayed with `transaction(at=)`.

        Raises InvalidError for a taken name, or for one that is defined otherwise: what a kind means never changes.
        """
        with self.verb(early=True, is_narrow=True) as work:
            vocabulary = self._core.vocabulary
            kind = new_kind(
                name,
                inverse=inverse,
                symmetric=symmetric,
                causal=causal,
                acyclic=acyclic,
                rests=rests,
                vocabulary=vocabulary,
            )
            if name in vocabulary.kinds:
                return  # already defined the same way
            work.op("define_kind", name)
            spec = {
                "name": name,
                "inverse": kind.inverse,
                "symmetric": symmetric,
                "causal": causal,
                "acyclic": acyclic,
            }
            if kind.rests:
                spec["rests"] = sorted(kind.rests)
            self._core.index.kinds.append(spec)
            vocabulary.add(kind)

    def promote_kind(self, name: str) -> None:
        """Give a link kind a relationship table of its own in the graph tables. They are rebuilt on next use."""
        with self.verb(is_narrow=True) as work:
            plain = self._core.vocabulary.canonical(name)
            index = self._core.index
            if self._core.vocabulary.kinds[plain].table or plain in index.promoted:
                raise ConflictError(f"link kind {plain!r} has its own table already.")
            work.op("promote_kind", plain)
            index.promoted.append(plain)

    # ------------------------------------------------------------------ verbs: events

    def define_point(self, type: str) -> None:
        """Define events of a type as points: from now on they cannot be open, so they have no status and nothing resolves them. Kept in the store.
        Defining it again changes nothing, and neither does a type that is a point anyway, such as `deploy`.

        Raises InvalidError for `error` and `regression`, which can always be open.
        """
        text_of("type", type)
        if type in fingerprints.BROKEN:
            raise InvalidError(f"events of type {type!r} can always be open. Choose a type of your own.")
        with self.verb(is_narrow=True) as work:
            defined = work.index.setting(happened.POINTS) or []
            if type not in defined and type not in fingerprints.NEVER_OPEN:
                work.op("define_point", type)
                work.index.add_settings([{happened.POINTS: [*defined, type]}])

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
        ended_at: TimeLike | None = None,
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

        A fix or a resolution, and what can be open and is named with it, are linked by `resolved_by`, from when the former happened; all else by `related_to`.
        Open can be all but deploys, fixes, resolutions, confirmations, messages and types that `define_point` names. `ended_at`: when a span ended.

        Without an id, the fingerprint of an event that stands makes it an occurrence of that event: `is_new` is false, its `count` grows. The same id with
        the same content is the same event, with other content a ConflictError. From `sender` on: see `timeline.record_message`. Raises InvalidError.
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
            ended_at=None if ended_at is None else moment(self.instant_of(ended_at, "ended_at")),
            sender=sender,
            sender_name=sender_name,
            thread=thread,
            classification=classification,
            media_path=media_path,
            media_hash=media_hash,
        )
        at = None if occurred_at is None else self.instant_of(occurred_at, "occurred_at")
        about = tuple(ids("related_to", related_to or ()))
        return self._perform(recording.RecordEvent(type, body, id, at, about))

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

        Without a `tx_from` column it is one transaction; with one, ascending transactions, one for each instant. Returns what was stored of each table, which
        may differ from what was given: new nodes, versions, new events and further occurrences, and links (one that is there already is none).
        Raises what the verbs raise, with the row's number; nothing is then kept of the transaction it is in.
        """
        return bulk.load(self, nodes=nodes, versions=versions, events=events, links=links, progress=progress)

    # ------------------------------------------------------------------ counterfactuals

    def without(
        self,
        *,
        source: str | None = None,
        author: str | None = None,
        id: str | None = None,
        tx: TimeLike | Change | None = None,
    ) -> Counterfactual:
        """The counterfactual view of now: what would be believed if some operations had never been recorded. Nothing is written.

        Omitted is every operation that all that is given fits: of an `author`, by its name or class (what stands before the first `:`); of what gives
        a `source`, and links that it made; on a thing or link by its `id`; of the transaction `tx` (an instant, or a change). The others are done again as they were
        called. Those that cannot be, such as a link to what was never made, are in the view's `left_out`. What was forgotten stays forgotten.

        It costs as much as recording again what follows the first omitted operation. `compare` with another view shows the difference. Raises
        NotFoundError for an id or a transaction that nothing was recorded of, InvalidError where nothing is given, or where something outside of
        a token's scopes changed something inside since.
        """
        from graphstore.store import counterfactual

        self._usable()
        at = tx.tx if isinstance(tx, findings.Change) else tx
        when = None if at is None else self.instant_of(at, "tx", "tx", "from")
        omitted = counterfactual.Omitted(source, author, id, when)
        chain = self._trunk._chain()
        return counterfactual.without(self, omitted, chain, GraphStore, is_part=bool(self._seen_scopes))

    def _chain(self) -> Iterator[Verbatim]:
        """Yield the lines of the chain that this opening sees."""
        return self._ledger.verbatim()

    # ------------------------------------------------------------------ settings and upkeep

    def set_trust(self, ranks: Mapping[str, int]) -> None:
        """Rank authors and sources, by what stands before the first `:`: who ranks lower may not close, replace, withdraw or forget what a higher one
        recorded. A writer has the rank of its author, or of its `source` if that is lower. A name without a rank is below every rank.

        Kept in the store, as recorded by who set it last. Raises InvalidError for a rank that is no whole number, ConflictError for a writer who ranks
        lower than that, or would rank itself higher.
        """
        wanted = inputs.json_object("ranks", ranks)
        for name, rank in wanted.items():
            if isinstance(rank, bool) or not isinstance(rank, int):
                raise InvalidError(
                    f"rank {rank!r} of {name!r} is no whole number. Give one, higher for more trust."
                )
        if wanted == self.trust:
            return
        with self.verb(is_narrow=True) as work:
            Trust(self._core, work.author).guard_map(wanted, work.tx)
            work.op(SET_TRUST, "")
            work.index.add_settings([{TRUST: wanted}])

    @property
    def trust(self) -> dict[str, int]:
        """The ranks of source classes."""
        return dict(self.setting(TRUST) or {})

    def set_languages(self, languages: Iterable[str]) -> None:
        """The languages texts are searched in, as Snowball names them: `["english", "german"]`. Kept in the store; the words of all texts are read anew.

        Raises InvalidError for a language there is no stemmer for, and for none at all.
        """
        wanted = [text_of("language", each) for each in inputs.ids("languages", languages)]
        if not wanted:
            raise InvalidError(f"no language is named. Give some of {', '.join(words.LANGUAGES)}.")
        words.Analyzer(tuple(wanted))  # raises for an unknown analyzer
        if wanted != list(self.languages):
            self.keep_setting("set_languages", word_rows.LANGUAGES, wanted)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages texts are searched in."""
        return tuple(self.setting(word_rows.LANGUAGES) or words.ENGLISH)

    def sweep(
        self,
        extractor: Extractor | None = None,
        *,
        judge: Judge | None = None,
        since: TimeLike | None = None,
    ) -> Swept:
        """Ask an extractor for links between what was recorded since the last sweep (or `since`) and all else, write what is admitted as one
        transaction, and do the upkeep. Without an extractor do only the upkeep. If the extractor raises, nothing is written and the next sweep asks again.

        `judge` is asked about pairs: what was recorded since it was last asked, each with at most ten that seem to disagree with it or are nearest in words.
        Where it says so, an inferred `contradicts` link with its reason is written, made by `judge`, in the same transaction. Raises InvalidError,
        with nothing written, when it does not give one `links.Verdict` a pair.
        """
        return sweeping.sweep(self, extractor, judge, since, self.evict_old)

    @property
    def retention(self) -> dict[str, int | None]:
        """What the store keeps: `days` and `bytes`, None for no limit."""
        kept: dict[str, int | None] | None = self._trunk.setting(RETENTION)
        return dict(kept) if kept else {"days": None, "bytes": None}

    def evict_old(self) -> list[str]:
        """Nothing: retention is the store's, not a branch's."""
        return []

    def _new_id(self) -> str:
        with self._core.on_working_set():
            return acts.new_id(self._core.index)

    # ------------------------------------------------------------------ branches

    def on(self, name: str) -> Branch:
        """The existing branch of that name. Raises NotFoundError when there is none."""
        trunk = self._trunk
        with trunk._core.lock:
            trunk._usable()
            made = trunk._made_as(name)
            there: Branch | None = trunk._in_use.get(made)
            if there is None:
                there = trunk._in_use[made] = Branch(trunk, *made)
                self._lines.append(there)
            return there

    def _not_made(self, name: str) -> Branch:
        """Return the existing branch, for `branch` on a read-only store. Raises NotFoundError, which explains why none is made."""
        try:
            return self.on(name)
        except NotFoundError as error:
            raise NotFoundError(
                f"{error} This store is open read only: branch() makes none. Open it with read_only=False to make one, or call refresh() "
                "where another process has made it."
            ) from None

    def branches(self) -> list[BranchInfo]:
        """The branches there are, in the order they were made."""
        trunk = self._trunk
        trunk._usable()
        return [_info(record) for record in trunk._branch_records(count=True).living()]

    @overload
    def compare(self, other: Reader) -> ViewDiff: ...
    @overload
    def compare(self, other: str) -> ViewDiff: ...
    def compare(self, other: Reader | str) -> ViewDiff:
        """What another view has that this has not, and the other way round; or what a branch has, by its name: this now against the branch now.

        A node is changed when its content, text or tags differ, whatever the numbers of its versions.
        """
        if not isinstance(other, str):
            return super().compare(other)
        return super().compare(self.on(other))

    def changes_to(self, other: Reader | str) -> Result:
        """The same as a table of one row for each field; see `View.changes_to`. `other` may be the name of a branch."""
        return super().changes_to(self.on(other) if isinstance(other, str) else other)

    def _fork(self, at: View | None, tx: TimeLike | None) -> Instant:
        if at is None:
            return self.as_of(tx=tx)._tx
        if tx is not None:
            raise InvalidError("at= and tx= mean the same thing. Give one of them.")
        if not isinstance(at, View) or at._core is not self._core:
            raise InvalidError(
                f"a branch of {self._named} begins at a view of it. Give at= one that as_of(…) of it gave, or tx=."
            )
        return at._tx


class GraphStore(Store):
    """An open store: all that `Store` can do on its trunk, its branches, and what concerns every line. Use `graphstore.open`."""

    # ------------------------------------------------------------------ branches

    def branch(
        self, name: str, *, at: View | None = None, tx: TimeLike | None = None, reason: str | None = None
    ) -> Branch:
        """Make a new line of belief: it begins with what the store knew at `tx`, or at the tx of the view `at` (default: now), and has every verb.

        Raises ConflictError when a branch has that name: `on(name)` gives it. On a store that is read only it is the same as `on`: none is made.
        """
        if self.read_only:
            return self._not_made(name)
        with self._by_itself("branch()"):
            return self._begin(name, self._fork(at, tx), reason)

    def _begin(self, name: str, fork: Instant, reason: str | None, parent: str | None = None) -> Branch:
        """Make a branch of the trunk, or of another branch."""
        name = printable("branch name", text_of("branch name", name))
        if self._living_record(name) is not None:
            raise ConflictError(
                f"there is a branch {name!r} already. Use on({name!r}), delete it, or choose another name."
            )
        self._change_branches(["branch", name, moment(fork), *(() if parent is None else (parent,))], reason)
        return self.on(name)

    def _change_branches(self, change: list[Any], reason: str | None) -> None:
        """Record that a branch was made or deleted."""
        with self._transact(None, None, None) as work, self._core.on_working_set():
            work.branches.append(change)
            work.op(change[0], change[1], reason)

    def delete_branch(self, name: str | Branch, *, reason: str | None = None) -> None:
        """Delete a branch, given by its name or its handle: it can no longer be read or written. What was merged of it stays. Its
        name is free again.

        Its lines stay in the journal until something is evicted without a trace. Raises NotFoundError when there is none of that name.
        """
        with self._by_itself("delete_branch()"):
            records = self._branch_records()
            record = self._found(name, records)
            gone = record.name
            children = [each.name for each in records.begun_from(record) if each.deleted is None]
            if children:
                raise ConflictError(
                    f"branch {gone!r} is what {', '.join(map(repr, children))} began from. Delete or merge and delete that first."
                )
            self._change_branches(["delete_branch", gone], reason)
            if (line := self._in_use.get((record.name, record.made))) is not None:
                line._let_go(line._over())
                line._leave()

    def merge(self, name: str | Branch, *, decide: Decide = None, reason: str | None = None) -> Merge:
        """Merge what was recorded on a branch (its name or its handle) since it began, or was merged last: all of it at one new instant, or nothing.

        A change on the branch alone is taken over; different changes on both sides are a conflict. `decide` picks the side that holds: for each id
        `trunk` or `branch`, one of the two for all, or a function of a conflict. With an undecided conflict nothing is written, and the result lists
        them all. What was believed at any earlier tx stays as it was; the branch goes on. Raises NotFoundError for an unknown branch.
        """
        return self._merge(name, decide, None if reason is None else text_of("reason", reason))

    def _merge(
        self, name: str | Branch, decide: Decide, reason: str | None, *, needs_change: bool = False
    ) -> Merge:
        """Merge a branch. `needs_change`: write nothing, not even that it was merged, if the trunk has it all."""
        with self._by_itself("merge()"):
            record = self._found(name)
            line = self.on(record.name)
            last = record.last_change
            if last is None or last <= record.base:
                return findings.Merge(merged=True)
            now = self.coordinate()[1]
            line._last_committed_tx()  # also reads the branch's kinds of link
            branch = changes_since.line_of(line._core)
            seen = (
                None
                if record.pulled is None
                else other_chains.known_upto(self._ledger.database, record.pulled)
            )
            plan = merge_plan.Planning(
                changes_since.line_of(self._core), branch, record.base, now, decide, seen=seen
            ).make_plan()
            if plan.undecided:
                return findings.Merge(merged=False, conflicts=tuple(plan.conflicts))
            if needs_change and plan.is_empty:
                return findings.Merge(merged=True)
            with self._transact(None, None, reason) as work, self._core.on_working_set():
                return carrying.Carrying(self._core, branch, work, plan, record.base).write()

    def merge_store(
        self,
        other: str | os.PathLike[str] | GraphStore,
        *,
        name: str | None = None,
        decide: Decide = None,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> Merge:
        """Import another store, by its folder or a bundle of it, as a branch, and merge that branch: what is new of both at one new instant.

        The branch has the other store's operations with their authors and reasons; when they were recorded there is `recorded_at` of what they state. What both
        have from before they parted is recognised by the digests of their chains. Imported again, only what is new comes, on the same branch. `name` is that of a
        new branch (default: that of the folder or file). Conflicts are those of `merge`, and `decide` too: with an undecided one the branch is
        imported, and the trunk unchanged. Branches of the other store do not come, what was forgotten here does not come back, and what was forgotten there
        stays here (`forgotten_there`).

        Raises NotFoundError if there is no such store; InvalidError for this store itself, or inside a transaction; DamageError for a damaged one; ConflictError for a
        bundle that begins after what is here, and as `merge`. Nothing of the import is kept then.
        """
        reason = None if reason is None else text_of("reason", reason)
        in_use = set(self._in_use)
        try:
            with (
                self._alone("merge_store()"),
                other_stores.opened(self, other) as chain,
                self.together(or_none=True),
            ):
                branch, imported = self._import(chain, name, progress)
                found = self._merge(branch, decide, reason, needs_change=True)
                still = self._still_here(imported.forgotten_there)
        except BaseException:
            for made in self._in_use.keys() - in_use:  # the branch was not made
                self._in_use[made]._leave()
            raise
        return found.model_copy(
            update={"branch": branch, "imported": imported.count, "forgotten_there": still}
        )

    def _import(
        self, chain: OtherChain, name: str | None, progress: Progress | None
    ) -> tuple[str, ChainImport]:
        """Write the new transactions of another chain on its branch, in a group. Return the name of the branch, and the import."""
        ledger = self._ledger
        living = self._branch_records().living()
        place = chain_import.find_place(ledger, chain, living, name)
        if place is None:
            after = other_chains.common(ledger.database, chain)
            branch = name or other_stores.free_name(chain, {each.name for each in living})
            fork = moment(chain.position(after).tx)
            self._change_branches(["branch", branch, fork], f"imported from {chain.named}")
        else:
            branch, after = place
        line = self.on(branch)
        rows = line._core.rows.database
        assert isinstance(rows, branch_ledger.BranchDatabase)
        tx = self._next_tx(None, self.last_tx)
        imported = chain_import.ChainImport(ledger, rows, chain, tx)
        self._lines[0]._group_first = min(self._lines[0]._group_first, tx)
        total = len(chain) - 1
        for lines in chain.transactions(after):
            imported.write(after, lines)
            after += len(lines)
            if progress is not None:
                progress(after, total)
        imported.finish()
        line._core.forget_found()
        return branch, imported

    def _still_here(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of some ids that the trunk knows and has not forgotten."""
        trunk = self._evictable()
        known = [name for name in dict.fromkeys(names) if trunk.number(name) is not None]
        return tuple(name for name, word in self._chosen(known).items() if not word)

    def verify(self) -> Verification:
        """Read the whole chain again, compare the rows of all lines with it, and every value of the graph tables with the rows. Changes nothing."""
        found = super().verify()
        problems = [*found.problems, *self._verify_branches()]
        return found.model_copy(update={"ok": not problems, "problems": tuple(problems)})

    def _verify_branches(self) -> Iterator[Problem]:
        held = [line for line in self._lines if isinstance(line, Branch)]
        for line in held:  # the rows of all branches are already compared with the chain
            for problem in line._core.graphs.verify():
                yield problem.model_copy(update={"message": f"branch {line.name!r}: {problem.message}"})

    # ------------------------------------------------------------------ branches and their contents

    def _made_as(self, name: str) -> tuple[str, Instant]:
        """Return the name of a branch, and when it was made. Raises NotFoundError if there is none."""
        if not isinstance(name, Branch):
            made = branch_ledger.branch_made(self._ledger, text_of("branch name", name))
            if made is not None:
                return name, made
        record = self._found(name)
        return record.name, record.made

    def _branch_records(self, *, count: bool = False) -> BranchRecords:
        """Return the records of all branches. `count`: include the number of their transactions."""
        for line in self._begun:
            line._core.hide_rows()
        with self._ledger.snapshot() as database:
            return branch_records.branch_records(database, count=count)

    def _living_record(self, name: str, records: BranchRecords | None = None) -> BranchRecord | None:
        record = (self._branch_records() if records is None else records).find(name)
        return None if record is None or record.deleted is not None else record

    def _found(self, name: str | Branch, records: BranchRecords | None = None) -> BranchRecord:
        records = self._branch_records() if records is None else records
        if isinstance(name, Branch):
            return self._of_handle(name, records)
        record = self._living_record(text_of("branch name", name), records)
        if record is None:
            there = [other.name for other in records.living()]
            raise NotFoundError.nearest("branch", name, lambda: there)
        return record

    def _of_handle(self, handle: Branch, records: BranchRecords) -> BranchRecord:
        """Return the record of a handle's branch, which may be closed. Raises NotFoundError if the name belongs to another branch by now."""
        record = self._living_record(handle.name, records)
        if handle._trunk is not self:
            raise InvalidError(
                f"{handle!r} is a branch of another store. branches() lists those of this one."
            )
        if record is None or not handle.is_of(record):
            raise NotFoundError(handle._over())
        return record

    def _contents_elsewhere(self, kind: str, setting: str) -> list[tuple[Any, list[KindContent]]]:
        """Return for each branch the value of a setting and the nodes of a kind that the trunk does not know. Empty unless `_is_settled`."""
        of = retention.Evictable(self._ledger.database)
        return list(of.contents_elsewhere(kind, setting)) if self._is_settled() else []

    # ------------------------------------------------------------------ verbs: forgetting, which reaches every branch

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
        event. Returns the ids, oldest first.

        `before`: events that happened last before then, and nodes of the named `kinds` that ended before then. `larger_than`: the oldest of these until the
        journal is smaller than so many bytes; without `before` none where all of them would not do, and `notices` says so. `ids`: these things, whatever
        their age. `keep_audit=False` removes the tombstones too. Views of earlier coordinates lose the contents as well. Raises InvalidError when none of
        the three is given, or inside a transaction.
        """
        wanted = None if kinds is None else frozenset(inputs.ids("kinds", kinds))
        cut = None if before is None else self.instant_of(before, "before")
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
                    trunk, over = self._evictable(), self._core.journal.size() - most
                    known = {name: ent for name in names if (ent := trunk.number(name)) is not None}
                    names = list(known)[: trunk.enough(known.values(), over, keep_audit)]
            else:
                names = self._too_old(wanted, cut, most, keep_audit)
            self._guard_forgetting(names, None)
            if names and keep_audit:
                self._forget("evict", names, reason)
            elif names:
                self._purge(set(names), reason)
            return names

    def evict_old(self) -> list[str]:
        """Evict the events older than the store's `retention` days, if set. Returns their ids. Each opening for writing does this."""
        days = self.retention["days"]
        if days is None:
            return []
        cut = max(self._now() - days * retention.DAY, BEGINNING)
        with self._by_itself("evict()"):
            if names := self._too_old(None, cut, None, True):
                self._forget("evict", names, f"older than {days} days")
            return names

    def erase(self, id: str, *, reason: str, author: str | None = None) -> None:
        """Forget what must not be kept: the content of one thing leaves every file of the store; its tombstone and the reason stay.
        The nodes joined with it are one thing with it: they are erased too.

        `id` is the whole id, `author` as of `transaction`. Raises NotFoundError for an unknown one, InvalidError inside a transaction.
        """
        text_of("reason", reason)
        with self._by_itself("erase()"):
            if self._chosen([text_of("id", id)]) != {id: "erased"}:
                names = self._by_rows(read_ids.one_thing, id)
                self._guard_forgetting(names, author)
                self._forget("erase", names, reason, author)

    def forget(
        self,
        who: str,
        *,
        names: str | Iterable[str] = (),
        mentions: bool = False,
        scope: str | None = None,
        keep_audit: bool = True,
        plan: str | None = None,
        reason: str | None = None,
        author: str | None = None,
    ) -> Forgetting:
        """Forget a person, by id or name: show what would be erased and what stays, or with the `plan` of what was shown erase exactly that, in one transaction.

        Erased are things, messages, summaries and segments of sessions that are of them: by id, slot, scope, author, source, sender or user, by what a statement
        is about, and what sums these up and names them. Every other text that names them is listed under `stays`, with the reason. `names`: further names, e-mail
        addresses, handles; those recorded with a name are found. `mentions`: erase what only names them too. `scope`: only there and below.
        `keep_audit=False` leaves no tombstones, as in `evict`. Where something changed since the plan, nothing is erased and the new plan is returned.

        `reason` stays, so it should not name them. `author` as of `transaction`. Raises InvalidError for no name, or with a plan inside a transaction; ConflictError where a
        more trusted author recorded some of it.
        """
        further = tuple(inputs.ids("names", names))
        request = forgetting.ForgetRequest(text_of("who", who), further, mentions, scope, keep_audit)
        if plan is None:
            with self._core.answering.snapshot() as database:
                return forgetting.PersonFinder(database, request).find()
        whole = self._eraser
        with whole._by_itself("forget() with a plan"):
            found = forgetting.PersonFinder(self._core.rows.database, request).find()
            if plan != found.plan:
                return found.model_copy(update={"is_changed": True})
            if found.ids:
                whole._erase_all(
                    found.ids, reason or "a person is forgotten", author or self._author, keep_audit
                )
            request = replace(request, names=found.names)  # those that were found are erased by now
            after = forgetting.PersonFinder(self._core.rows.database, request).find()
            tx = moment(whole.last_tx) if found.ids else None
        files = tuple(
            each for each in found.stays if each.what == "files"
        )  # what named them is erased by now
        done = {
            "erases": found.erases,
            "stays": (*after.stays, *files),
            "plan": plan,
            "applied": True,
            "tx": tx,
        }
        return after.model_copy(update=done)

    @property
    def _eraser(self) -> GraphStore:
        """Return the store whose contents `forget` erases: of a part of a store the whole one."""
        return self

    def _erase_all(self, names: Iterable[str], reason: str, author: str | None, keep_audit: bool) -> None:
        """Erase several things in one transaction, which the caller has the turn for."""
        wanted = list(names)
        self._guard_forgetting(wanted, author)
        if keep_audit:
            self._forget("erase", wanted, reason, author)
        else:
            self._purge(set(wanted), reason)

    def _guard_forgetting(self, names: list[str], author: str | None) -> None:
        """Raise ConflictError if an author who ranks higher than this one recorded one of these things."""
        Trust(self._core, self._signed(author)).guard_forgetting(self._ledger.database, names)

    def set_retention(self, *, days: int | None = None, bytes: int | None = None) -> None:
        """Keep events for so many days, and the journal below so many bytes; None: no limit. Kept in the store, acted on at each opening for writing,
        and the size after each commit. For the size what remains of evicted events goes too, once it takes a quarter: then one record a day says how
        many of which type, of which day, are gone."""
        wanted = {
            "days": inputs.whole_number("days", days),
            "bytes": inputs.whole_number("bytes", bytes),
        }
        if wanted != self.retention:
            self.keep_setting("set_retention", RETENTION, wanted)

    def _chosen(self, names: Iterable[str]) -> dict[str, str]:
        """Return how each of these full ids was forgotten: `evicted`, `erased` or empty. Raises NotFoundError for an id that no line knows."""
        return retention.words(self._ledger.database, names)

    def _evictable_elsewhere(self) -> list[retention.Evictable]:
        """Return the finder of evictable things for each branch, deleted ones included."""
        return [*retention.branches(self._ledger.database)]

    def _too_old(
        self, kinds: frozenset[str] | None, cut: Instant | None, most: int | None, keep_audit: bool
    ) -> list[str]:
        """Return the ids that may be evicted, on the trunk and on branches, oldest of each line first. `most`: evict only until the journal has at most this many bytes."""
        trunk, now = self._evictable(), self._now()
        found: list[str] = []
        over = None if most is None else self._core.journal.size() - most
        for each in (trunk, *self._evictable_elsewhere()):
            things = each.oldest(kinds, cut, now, tombstones=not keep_audit)
            if each is not trunk:
                things = [one for one in things if trunk.number(one.id) is None and one.id not in found]
            if over is not None:
                things = things[: each.enough((one.number for one in things), over, keep_audit)]
                over -= sum(each.freed(one.number, keep_audit) for one in things)
            found += [one.id for one in things]
        if over is not None and over > 0 and cut is None and found:
            self.notices.append(
                f"nothing was evicted: without all {len(found)} of it the journal would still be about {over} bytes larger than {most}."
            )
            return []
        return found


def _info(record: BranchRecord) -> BranchInfo:
    return findings.BranchInfo(
        name=record.name,
        forked_at=moment(record.fork),
        made_at=moment(record.made),
        transactions=record.transactions,
        last_tx=None if record.last is None else moment(record.last),
        merged_at=None if record.merged is None else moment(record.merged),
        parent=None if record.parent is None else record.parent.name,
        pulled_at=None if record.pulled is None else moment(record.pulled),
    )


def _refused(verb: str, why: str) -> Callable[..., NoReturn]:
    """Return a method of a branch that raises InvalidError, for what only the trunk can do."""

    def refuse(self: Branch, *_: Any, **__: Any) -> NoReturn:
        raise InvalidError(f"{verb}() on branch {self.name!r}. {why}: call it on the store itself.")

    refuse.__name__, refuse.__qualname__ = verb, f"Branch.{verb}"
    refuse.__doc__ = f"Refused: {why}."
    return refuse


class Branch(Store):
    """A branch of a store, with all its reads and verbs. What is recorded here is visible only here. `GraphStore.branch` and `on` return it.

    Its rows answer its reads. Closing the store closes the branch.
    """

    def __init__(self, trunk: GraphStore, name: str, made: Instant) -> None:
        # does not call the store's: a branch shares everything but its rows with the trunk
        self.name, self._made = name, made
        self._named = f"branch {name!r}"
        self._place, self._clock, self._author = trunk._place, trunk._clock, trunk._author
        self._writer, self._lines, self.notices = trunk._writer, trunk._lines, trunk.notices
        self._begun = trunk._begun
        self._asked = trunk._asked
        core, ledger, vocabulary = trunk._core, trunk._ledger, Vocabulary()
        rows = branch_ledger.BranchLedger(ledger, name, made)
        graphs = Graphs(
            None, ledger, vocabulary,
            driver=core.graphs.driver, notify=self.notices.append, ledger=rows,
        )  # fmt: skip
        if core.graphs.workers is not None:
            graphs.serve(core.graphs.workers)
        vocabulary.extend(rows.last_tx_and_new_kinds()[1] or ())
        if rows.is_deleted:
            raise InvalidError(self._over())
        self._core = Core(
            ledger, vocabulary, graphs,
            rows=rows, lock=core.lock, vectors=core.vectors,
        )  # fmt: skip

    def _record(self) -> BranchRecord | None:
        return self._trunk._branch_records().find_made_at(self.name, self._made)

    def is_of(self, record: BranchRecord) -> bool:
        """Whether this is that branch: a name may be used again."""
        return (record.name, record.made) == (self.name, self._made)

    # ------------------------------------------------------------------ writing through the trunk

    def _last_committed_tx(self) -> Instant:
        rows = self._core.rows
        last = super()._last_committed_tx()  # also reads the branch's kinds of link
        if isinstance(rows, branch_ledger.BranchLedger) and rows.is_deleted:
            self._let_go(self._over())
            self._leave()
            self._core.refuse_closed()
        return last

    def _keep_small(self) -> None:
        self._trunk._keep_small()

    def _keep_accesses(self) -> None:
        self.flush_accesses()

    def _usable(self) -> None:
        self._trunk._usable()
        super()._usable()

    # ------------------------------------------------------------------ state of the branch

    @property
    def info(self) -> BranchInfo:
        """Where the branch began, and its state."""
        return next(
            info
            for info in self._trunk.branches()
            if (info.name, info.made_at) == (self.name, moment(self._made))
        )

    def close(self) -> None:
        """Release what was read of it. The branch stays; `on(name)` of the trunk returns it again."""
        with self._writer:
            self._refuse_open("close()")
            if self._trunk._in_use.get((self.name, self._made)) is self:
                self._write_accesses()
                self._let_go(f"branch {self.name!r} was closed. Get it again with on({self.name!r}).")
                self._leave()

    def _leave(self) -> None:
        """Remove the branch from those in use."""
        with self._trunk._core.lock:
            if self._trunk._in_use.pop((self.name, self._made), None) is not None:
                self._lines.remove(self)

    def __repr__(self) -> str:
        return f"<Branch {self.name!r} of {self._trunk!r}>"

    def refresh(self) -> int:
        """Follow the writer's journal, as the store does."""
        return self._trunk.refresh()

    def verify(self) -> Verification:
        """Check the whole store, as the store does."""
        return self._trunk.verify()

    # ------------------------------------------------------------------ operations of the trunk only

    def branch(
        self, name: str, *, at: View | None = None, tx: TimeLike | None = None, reason: str | None = None
    ) -> Branch:
        """Make a new line of belief from this one: it begins with what this branch knew at `tx`, or at the tx of the view `at` (default: now).

        It is merged into the trunk as any other, with what it has from here. Raises ConflictError when a branch has that name.
        """
        if self.read_only:
            return self._not_made(name)
        trunk = self._trunk
        with trunk._by_itself("branch()"):
            fork, record = self._fork(at, tx), self._record()
            assert record is not None
            if fork < record.fork:
                raise InvalidError(
                    f"branch {self.name!r} began at tx {exactly(record.fork)}: what was known before is the trunk's. Fork there, or give a later tx."
                )
            return trunk._begin(name, fork, reason, self.name)

    def pull(self, *, decide: Decide = None, reason: str | None = None) -> Merge:
        """Take over what was recorded on the trunk since this branch began, or pulled last: all of it at one new instant, or nothing.

        The counterpart of `merge`: in a conflict `ours` is what this branch says. Raises InvalidError inside a transaction.
        """
        reason = None if reason is None else text_of("reason", reason)
        trunk = self._trunk
        with self._by_itself("pull()"):
            record = self._record()
            assert record is not None
            now = self.coordinate()[1]
            here, there = changes_since.line_of(self._core), changes_since.line_of(trunk._core)
            plan = merge_plan.Planning(
                here, there, record.latest, now, decide, seen=record.merged, pulls=True
            ).make_plan()
            if plan.undecided:
                return findings.Merge(merged=False, conflicts=tuple(plan.conflicts))
            if plan.is_empty:
                return findings.Merge(merged=True)
            with self._transact(None, None, reason) as work, self._core.on_working_set():
                return carrying.Carrying(self._core, there, work, plan, record.latest).write()

    merge = _refused("merge", "Branches are merged into the trunk")
    delete_branch = _refused("delete_branch", "It concerns the whole store")
    evict = _refused("evict", "What is forgotten is forgotten everywhere")
    erase = _refused("erase", "What is forgotten is forgotten everywhere")
    forget = _refused("forget", "What is forgotten is forgotten everywhere")
    merge_store = _refused("merge_store", "Another store is merged into the trunk")
    set_retention = _refused("set_retention", "It concerns the whole store")
    define_point = _refused("define_point", "It concerns the whole store")

    def _over(self) -> str:
        return branch_ledger.OVER.format(self.name)
