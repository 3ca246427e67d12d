"""Commands that tell the store something: each is the verb of its name."""

import re
import sys
from typing import Annotated

import typer

from graphstore.cli_common import (
    Author,
    Content,
    From,
    Id,
    Json,
    Metadata,
    Reason,
    Source,
    Store,
    Text,
    To,
    Trigger,
    answer,
    answer_node,
    function,
    given,
    json_content,
    open_store,
    place_of,
    standing_now,
)


def init(store: Store, as_json: Json = False) -> None:
    """Make an empty store."""
    with open_store(store, create=True) as opened:
        stats = opened.stats()
    answer(stats, as_json, f"{place_of(store)} is a store, {stats['transactions']} transactions.")


def add(
    store: Store,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What sort of thing: fact, decision, file, …")],
    content: Content,
    id: Annotated[str | None, typer.Option("--id", help="Its id. [a new one]")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The slot it fills, such as deploy_day.")] = None,
    text: Text = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag (may be repeated).")] = None,
    valid_from: From = None,
    valid_to: To = None,
    scope: Annotated[str | None, typer.Option("--scope", help="Where it applies. [everywhere]")] = None,
    supersedes: Annotated[
        list[str] | None,
        typer.Option("--supersedes", metavar="ID", help="What it replaces (may be repeated)."),
    ] = None,
    corrects: Annotated[
        list[str] | None, typer.Option("--corrects", metavar="ID", help="What it corrects (may be repeated).")
    ] = None,
    derived_from: Annotated[
        list[str] | None,
        typer.Option("--derived-from", metavar="ID", help="What it rests on (may be repeated)."),
    ] = None,
    reason: Reason = None,
    source: Source = None,
    trigger: Trigger = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Say something new. (add_node)"""
    options = given(
        id=id, key=key, text=text, tags=tag, valid_from=valid_from, valid_to=valid_to, scope=scope,
        supersedes=supersedes, corrects=corrects, derived_from=derived_from, reason=reason, source=source, trigger=trigger,
    )  # fmt: skip
    body = json_content(content)
    with open_store(store, author=author) as opened:
        node = opened.add_node(kind, body, **options)
        said_before = opened.inspect(node.id).confirmations
    answer_node("confirmed" if said_before else "added", node, as_json)


def revise(
    store: Store,
    id: Id,
    content: Content,
    text: Text = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag (may be repeated). [as before]")
    ] = None,
    valid_from: From = None,
    valid_to: To = None,
    reason: Reason = None,
    trigger: Trigger = None,
    source: Source = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Give a better description, over all or part of its valid time."""
    options = given(
        text=text, tags=tag, valid_from=valid_from, valid_to=valid_to, reason=reason, trigger=trigger, source=source
    )  # fmt: skip
    body = json_content(content)
    with open_store(store, author=author) as opened:
        answer_node("revised", opened.revise(id, body, **options), as_json)


def supersede(
    store: Store,
    old: Annotated[list[str], typer.Argument(metavar="OLD...", help="What is replaced: one id or several.")],
    by: Annotated[str, typer.Option("--by", metavar="NEW", help="What replaces it.")],
    reason: Reason = None,
    valid_from: From = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """The world moved on: OLD was true until NEW began."""
    with open_store(store, author=author) as opened:
        links = opened.supersede(*old, by=by, **given(reason=reason, valid_from=valid_from))
    answer(links, as_json)


def end(
    store: Store,
    id: Id,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Until when. [now]")] = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """It was true until then."""
    with open_store(store, author=author) as opened:
        opened.end(id, **given(at=at, reason=reason))
        node = opened.inspect(id).node
    answer(node, as_json, f"ended {node.id}; it {standing_now(node)}.")


def retract(
    store: Store,
    id: Id,
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why it should not have been said.")],
    valid_from: From = None,
    valid_to: To = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """It should not have been said, over all or part of its valid time."""
    with open_store(store, author=author) as opened:
        opened.retract(id, reason=reason, **given(valid_from=valid_from, valid_to=valid_to))
        node = opened.inspect(id).node
    answer(node, as_json, f"retracted {node.id}; it {standing_now(node)}.")


def fold(
    store: Store,
    members: Annotated[list[str], typer.Argument(metavar="ID...", help="What is summed up.")],
    into: Annotated[
        str,
        typer.Option(
            "--into", metavar="ID|CONTENT", help="The summary: an id, or a JSON object for a new one."
        ),
    ],
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Sum up several things in one that is derived from them."""
    summary = json_content(into) if into.lstrip().startswith(("{", "@", "-")) else into
    with open_store(store, author=author) as opened:
        node = opened.fold(members, into=summary, reason=reason)
    answer_node("folded into", node, as_json)


def consolidate(
    store: Store,
    kind: Annotated[str | None, typer.Option("--kind", help="Only nodes of this kind.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only what has this tag or key.")] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="Only what began before then.")
    ] = None,
    similar: Annotated[
        float | None, typer.Option("--similar", help="The part of the words to share. [0.5]")
    ] = None,
    at_least: Annotated[int | None, typer.Option("--at-least", help="Groups of so many. [2]")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Fold them; without it nothing is written.")] = False,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Propose what to sum up in one: what no longer holds, what says alike; or do it."""
    from graphstore import consolidation

    options = given(kind=kind, topic=topic, before=before, similar=similar, at_least=at_least)
    with open_store(store, author=author, read_only=not apply) as opened:
        groups = consolidation.consolidate(opened, **options)
        made = consolidation.fold(opened, groups) if apply else []
    told = (
        [f"folded into {node.id}: {group}" for node, group in zip(made, groups, strict=True)]
        if apply
        else groups
    )
    said = "\n".join(map(str, told)) or "there is nothing to sum up."
    answer(made if apply else groups, as_json, said)


def snapshot(
    store: Store,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name, for --as-of.")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Give the present coordinate a name, for ever."""
    with open_store(store, author=author) as opened:
        made = opened.snapshot(name)
    answer(made, as_json)


def confirm(
    store: Store,
    id: Id,
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="What was looked at.")],
    source: Source = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """It still holds: what it rests on shakes it no more."""
    with open_store(store, author=author) as opened:
        opened.confirm(id, reason=reason, source=source)
        found = opened.inspect(id)
    answer(
        found,
        as_json,
        f"confirmed {found.node.id}, {found.confirmations} in all; it {standing_now(found.node)}.",
    )


def link(
    store: Store,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The id the sentence begins with.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="supersedes, caused_by, contradicts, …")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The id it ends with.")],
    reason: Reason = None,
    strength: Annotated[int | None, typer.Option("--strength", help="1 (weak) to 5 (strong).")] = None,
    confidence: Annotated[str | None, typer.Option("--confidence", help="Or: inferred. [explicit]")] = None,
    created_by: Annotated[str | None, typer.Option("--created-by", help="Who makes it. [user]")] = None,
    valid_from: From = None,
    valid_to: To = None,
    metadata: Metadata = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Join two things, read as a sentence: SOURCE KIND TARGET."""
    options = given(
        reason=reason, strength=strength, confidence=confidence, created_by=created_by, valid_from=valid_from,
        valid_to=valid_to, metadata=None if metadata is None else json_content(metadata),
    )  # fmt: skip
    with open_store(store, author=author) as opened:
        answer(opened.link(source, kind, target, **options), as_json)


def unlink(
    store: Store,
    link_id: Annotated[str, typer.Argument(metavar="LINK_ID", help="The link's id, lnk_….")],
    valid_from: From = None,
    valid_to: To = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Stop believing a link, over all or part of its valid time."""
    with open_store(store, author=author) as opened:
        opened.unlink(link_id, **given(valid_from=valid_from, valid_to=valid_to, reason=reason))
    answer({"unlinked": link_id}, as_json, f"unlinked {link_id}.")


def event(
    store: Store,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="What sort of event: commit, error, deploy, …")],
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", help="What happened.")],
    id: Annotated[str | None, typer.Option("--id", help="Its id. [a new one]")] = None,
    occurred_at: Annotated[
        str | None, typer.Option("--occurred-at", metavar="TIME", help="When. [now]")
    ] = None,
    source: Source = None,
    origin: Annotated[str | None, typer.Option("--origin", help="What sort of source. [agent]")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Which agent.")] = None,
    related_to: Annotated[
        list[str] | None,
        typer.Option("--related-to", metavar="ID", help="What it touches (may be repeated)."),
    ] = None,
    metadata: Metadata = None,
    fingerprint: Annotated[str | None, typer.Option("--fingerprint", help="Same one, same event.")] = None,
    trace_id: Annotated[str | None, typer.Option("--trace-id", help="OpenTelemetry trace.")] = None,
    span_id: Annotated[str | None, typer.Option("--span-id", help="OpenTelemetry span.")] = None,
    parent_span_id: Annotated[
        str | None, typer.Option("--parent-span-id", help="The span around it.")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Record that something happened. (record_event)"""
    options = given(
        id=id, occurred_at=occurred_at, source=source, origin=origin, agent=agent, related_to=related_to,
        metadata=None if metadata is None else json_content(metadata), fingerprint=fingerprint,
        trace_id=trace_id, span_id=span_id, parent_span_id=parent_span_id,
    )  # fmt: skip
    with open_store(store, author=author) as opened:
        recorded = opened.record_event(type, description, **options)
    for warning in recorded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    what = "recorded" if recorded.is_new else f"seen {recorded.event.count} times:"
    answer(recorded, as_json, f"{what} {recorded.event.id}: {recorded.event.description}")


def evict(
    store: Store,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="What happened last before then.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="What is older: 90d, 4w, 12h.")
    ] = None,
    larger_than: Annotated[
        int | None, typer.Option("--larger-than", metavar="BYTES", help="The oldest, until it is smaller.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only events of this type, nodes of this kind (may be repeated)."),
    ] = None,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Leave no tombstones either.")] = False,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Forget what is too old to keep: contents go, tombstones stay."""
    if before is not None and older_than is not None:
        raise typer.BadParameter("--before and --older-than say the same thing. Give one of them.")
    if before is None and older_than is None and larger_than is None:
        raise typer.BadParameter(
            "without --before, --older-than or --larger-than everything would be forgotten. Give one of them."
        )
    if older_than is not None and not re.fullmatch(r"(?=0*[1-9])[0-9]{1,9}[mhdw]", older_than):
        raise typer.BadParameter(
            f"{older_than!r} is no age. Give whole minutes, hours, days or weeks: 30m, 12h, 90d, 4w."
        )
    with open_store(store, author=author) as opened:
        cut: object = before
        if older_than is not None:
            from graphstore.period import instant, moment
            from graphstore.windows import window

            cut = moment(window(older_than, instant(opened.at.valid))[0])
        options = given(before=cut, larger_than=larger_than, kinds=kind)
        gone = opened.evict(**options, keep_audit=not no_audit)
    answer({"evicted": gone}, as_json, f"evicted {len(gone)}{': ' if gone else ''}{', '.join(gone)}.")


def erase(
    store: Store,
    id: Annotated[str, typer.Argument(metavar="ID", help="The whole id.")],
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why it must not be kept.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Forget what must not be kept: its content leaves every file of the store. It cannot be undone."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("nobody is here to be asked. Give --yes to erase all the same.")
        typer.confirm(f"Erase {id} for good?", abort=True, err=True)
    with open_store(store, author=author) as opened:
        opened.erase(id, reason=reason)
    answer({"erased": id}, as_json, f"erased {id}; the reason stays: {reason}")


def resolve(
    store: Store,
    one: Annotated[str, typer.Argument(metavar="ONE", help="One of two that contradict each other.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The other.")],
    keep: Annotated[str, typer.Option("--keep", metavar="ID", help="The one that is right, or: both.")],
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why it was decided so.")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Decide a contradiction: the other is retracted and corrected by the one kept, or both stand."""
    with open_store(store, author=author) as opened:
        done = opened.resolve(opened.contradiction(one, other), keep=keep, reason=reason)
    words = "both stand" if done.decision == "both" else f"{done.decision} is kept"
    answer(done, as_json, f"{done.source.id} and {done.target.id}: {words}.")


def sweep(
    store: Store,
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor", metavar="MODULE:FUNCTION", help="What proposes links; none: upkeep only."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Ask about what was told after. [the last sweep]"),
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Ask an extractor for links between what was told lately, forget what is old, count what is open."""
    propose = None if extractor is None else function(extractor)
    with open_store(store, author=author) as opened:
        answer(opened.sweep(propose, since=since), as_json)
