"""The commands that are calls, a row each: under which name and in which group, what a person gives besides, and how the answer is printed.

A command has the name of its Python method; where people have a shorter word (`get`, `search`, `why`, `timeline`, `events`), it has that. The name of the method,
and names that a command had before, are understood too, and not listed.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from graphstore.cli import common, file_commands
from graphstore.cli.command_rows import Command, CommandRun
from graphstore.cli.command_words import EMBEDDER, Help
from graphstore.cli.pager import echo

Values = Mapping[str, Any]
_NAMED = 5  # things, at most
STORES, READ, WRITE, TIME, SESSIONS, MEMORY, INTERFACES = GROUPS = (
    "stores",
    "read",
    "write",
    "time",
    "sessions",
    "memory",
    "interfaces",
)


def _text(asked: CommandRun, found: Any) -> str:
    return str(found)


def _one_a_line(asked: CommandRun, found: Any) -> str:
    return "\n".join(found)


def _or(nothing: str) -> Callable[[CommandRun, Any], object]:
    """A list, or what is printed where it is empty."""
    return lambda asked, found: found or nothing


def _as_it_is(text: Callable[[Any], str]) -> Callable[[CommandRun, Any], None]:
    """Text with no line folded and no bracket taken for a mark: an agent reads it."""
    return lambda asked, found: common.say(text(found))


def _node(word: str) -> Callable[[CommandRun, Any], str]:
    def show(asked: CommandRun, node: Any) -> str:
        from graphstore.show.tables import label
        from graphstore.values.period import when

        return f"{word} {node.ref}, valid {when(node.valid_from)} → {when(node.valid_to)}: {label(node)}"

    return show


def _standing(node: Any) -> str:
    from graphstore.values import models

    return "still stands now" if node.standing == "stands" else f"is {models.in_words(node.standing)} now"


def _refuse_time(what: str) -> Callable[[Values], None]:
    def check(values: Values) -> None:
        if values.keys() & {"valid", "tx"}:
            raise typer.BadParameter(what)

    return check


# ---- what is asked ----------------------------------------------------------------------------


def _search(asked: CommandRun) -> Any:
    memory = {name: asked.values.pop(name) for name in ("layers", "user", "embedder") if name in asked.values}
    if "decay" in asked.values:
        from graphstore.values.decay import Decay

        asked.values["decay"] = Decay(half_life=asked.values["decay"])
    if not memory:
        return asked.call()
    if apart := asked.values.keys() & {"kinds", "key", "scope"}:
        flag = {"kinds": "kind"}.get(min(apart), min(apart))
        raise typer.BadParameter(
            f"--layer, --user and --embedder ask memory, which holds chunks alone, in scopes of its own; they take no --{flag}."
        )
    from graphstore.memory.memory import Memory

    at = asked.view.at
    return Memory(asked.store, memory.pop("embedder", None)).recall(
        **asked.values, **memory, valid=at.valid, tx=at.tx
    )


def _links(asked: CommandRun) -> Any:
    way = asked.pop("direction")
    found = [] if way == "back" else list(asked.call())
    seen = {one.id for one in found}
    return (
        found
        if way == "out"
        else found + [one for one in asked.ask("backlinks_to", **asked.values) if one.id not in seen]
    )


def _path(asked: CommandRun) -> Any:
    if not asked.pop("every"):
        return asked.call()
    asked.values.pop("by", None)
    return asked.ask("paths", **asked.values)


def _query(asked: CommandRun) -> Any:
    cypher, recipe, tables, params, form, file = asked.pop(
        "text", "recipe", "tables", "param", "format", "output"
    )
    text, given = common.text_or_input(cypher), common.parameters(params)
    from graphstore.graph.guard import refuse_limits

    refuse_limits(given)
    if recipe is not None:
        at = asked.view.at
        found = asked.store.recipe(recipe, valid=at.valid, tx=at.tx, **given)
    else:
        found = (
            asked.store.query_tables(text, **_coordinate_of(asked, text), **given)
            if tables
            else asked.view.query(text, **given)
        )
    return asked.rows(found, form, file)


def _over(asked: CommandRun) -> Any:
    from graphstore.store import over_time

    rows = asked.pop(*_ROWS)
    found = over_time.answered(asked.store, asked.view, **asked.values)
    return asked.rows(found, *rows)


def _check_query(values: Values) -> None:
    if ("text" in values) == ("recipe" in values):
        raise typer.BadParameter("give either what to ask in Cypher, or --recipe NAME.")


def _coordinate_of(asked: CommandRun, text: str) -> dict[str, Any]:
    """Return the values that --valid and --tx give to $valid and $tx in a text over the whole history."""
    from graphstore.graph.macros import reads
    from graphstore.graph.statement import parse

    said = {axis for axis in ("valid", "tx") if getattr(asked, axis) is not None}
    if unread := said - reads(text) - parse(text).params:
        axis = min(unread)
        raise typer.BadParameter(
            f"--tables is the whole history, and the text reads no ${axis}. Write WHERE AS_OF(v) or use ${axis}, or leave --{axis} out."
        )
    return {axis: getattr(asked.view.at, axis) for axis in said}


def _brief(asked: CommandRun) -> Any:
    at = {axis: getattr(asked.view.at, axis) for axis in ("valid", "tx") if getattr(asked, axis) is not None}
    return asked.store.brief(**asked.values, **at)


def _review(asked: CommandRun) -> Any:
    limit = asked.values.setdefault("limit", 100)
    return {
        "contradictions": asked.ask("contradictions", **asked.values),
        "shaky": asked.ask("shaky", limit=limit),
        "unsure": asked.ask("sessions.doubts", limit),
        "joins": asked.ask("joinable", limit),
    }


def _written(name: str) -> Callable[[CommandRun, Any], object]:
    """Return what makes text of an answer by the function of `show.paragraphs` of that name."""

    def show(asked: CommandRun, found: Any) -> object:
        from graphstore.show import paragraphs

        return getattr(paragraphs, name)(found)

    return show


def _history(asked: CommandRun, found: Any) -> object:
    """The rows of a node, each with the fields of its content that it changed."""
    from graphstore.show.tables import Grid, grid_of
    from graphstore.values.content_diff import changed_fields

    if not found or not hasattr(found[0], "content"):  # of a link
        return found
    every = asked.ask("versions", **asked.values)
    changed = {(one.ref, one.valid_from): of for one, of in zip(every, changed_fields(every), strict=True)}
    columns, rows = grid_of(found)
    cells = [(*row, changed.get((one.ref, one.valid_from))) for row, one in zip(rows, found, strict=True)]
    return iter([Grid((*columns, "changed"), cells)])


def _timeline(asked: CommandRun) -> Any:
    from graphstore.events.timeline import messages

    view = asked.view if asked.valid or asked.tx else asked.store
    page = messages(view, **asked.values)
    return {"events": page.events, "cursor": page.cursor, "added": page.added}


def _check_cursor(values: Values) -> None:
    if "cursor" in values:
        _refuse_time("a --cursor knows its coordinate; it takes no --valid and no --tx.")(values)


def _trace(asked: CommandRun) -> Any:
    return asked.call(asked.ask("timeline.whole_trace_id", asked.pop("trace_id")))


def _changes(asked: CommandRun) -> Any:
    if asked.pop("format") != "cloudevents":
        return asked.call()
    import orjson

    from graphstore.interchange.cloud_events import cloud_events, structured

    lines = [structured(event).decode() for event in cloud_events(asked.store, asked.pop("since"))]
    asked.words = lambda: echo("\n".join(lines), nl=bool(lines))
    return orjson.loads(f"[{','.join(lines)}]")


def _memory_stats(asked: CommandRun) -> Any:
    from graphstore.memory.memory import Memory

    return Memory(asked.store).stats(asked.view)


def _context(asked: CommandRun) -> Any:
    from graphstore.memory.memory import Memory

    embedder = asked.pop("embedder")
    found = asked.call(memory=Memory(asked.store, embedder) if embedder else None)
    common.say(f"note: {found.note}", err=True)
    if found.left_out:
        missing = ", ".join(f"{one.section} {one.count:,}" for one in found.left_out)
        common.say(f"note: left out for want of room: {missing}", err=True)
    return found


# ---- what is written --------------------------------------------------------------------------


def _add(asked: CommandRun) -> Any:
    node = asked.call()
    word = "confirmed" if asked.store.inspect(node.id).confirmations else "added"
    asked.words = _with_warnings(_node(word))(asked, node)
    return node


def _with_warnings(show: Callable[[CommandRun, Any], str]) -> Callable[[CommandRun, Any], str]:
    """Return a function that shows what was written, and below it what it repeats or may contradict."""

    def shown(asked: CommandRun, done: Any) -> str:
        if not hasattr(done, "maybe_contrary"):
            return show(asked, done)
        from graphstore.values.findings import warned_lines

        return "\n".join([show(asked, done), *warned_lines(done.similar, done.maybe_contrary)])

    return shown


def _link(asked: CommandRun) -> Any:
    words = asked.pop("also")
    if words is None:
        return asked.call()
    if len(words) % 3:
        raise typer.BadParameter(f"{' '.join(words)!r} is not made of links. Give each as A KIND B.")
    links = zip(words[::3], words[1::3], words[2::3], strict=True)
    return asked.call(
        also=[(asked.whole(source), kind, asked.whole(target)) for source, kind, target in links]
    )


def _supersede(asked: CommandRun) -> Any:
    return asked.call(*asked.pop("old"))


def _end(word: str) -> Callable[[CommandRun], Any]:
    def act(asked: CommandRun) -> Any:
        asked.call()
        node = asked.store.inspect(asked.values["id"]).node
        asked.words = f"{word} {node.id}; it {_standing(node)}.{_now_shaky(asked, node.id)}"
        return node

    return act


def _now_shaky(asked: CommandRun, id: str) -> str:
    """Return the words for what rests on a thing, directly or not, and is shaky now."""
    kinds = asked.store.vocabulary.from_dependants
    found = [each.id for each in asked.store.walk(id, kinds, 10, "in").nodes if each.standing == "shaky"]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f" What rests on it is shaky now: {', '.join(found[:_NAMED])}{more}." if found else ""


def _undo(asked: CommandRun) -> Any:
    from graphstore.values.period import exactly, instant

    many = "since" in asked.values
    done = asked.call()
    what = "what was written since the transaction" if many else "the transaction"
    asked.words = (
        f"took back {what} of {exactly(instant(done.subject))}; undo {exactly(done.tx)} to have it again."
    )
    return done


def _confirm(asked: CommandRun) -> Any:
    asked.call()
    found = asked.store.inspect(asked.values["id"])
    asked.words = f"confirmed {found.node.id}, {found.confirmations} in all; it {_standing(found.node)}."
    return found


def _fold(asked: CommandRun) -> Any:
    into = asked.pop("into")
    return asked.call(
        into=common.json_content(into) if into.lstrip().startswith(("{", "@", "-")) else asked.whole(into)
    )


def _consolidate(asked: CommandRun) -> Any:
    from graphstore.topics import consolidation

    apply = asked.pop("apply")
    groups = consolidation.consolidate(asked.store, **asked.values)
    made = consolidation.fold(asked.store, groups) if apply else []
    lines = (
        [f"folded into {node.id}: {group}" for node, group in zip(made, groups, strict=True)]
        if apply
        else groups
    )
    asked.words = "\n".join(map(str, lines)) or "there is nothing to sum up."
    return made if apply else groups


def _unlink(asked: CommandRun) -> Any:
    asked.call()
    said = [asked.values[name] for name in ("source", "kind", "target") if name in asked.values]
    return {"unlinked": asked.values.get("link_id") or " ".join(said)}


def _event(asked: CommandRun, done: Any) -> str:
    what = "recorded" if done.is_new else f"seen {done.event.count} times:"
    return f"{what} {done.event.id}: {done.event.description}"


def _message(asked: CommandRun, done: Any) -> str:
    return f"{'recorded' if done.is_new else 'known:'} {done.event.id}: {done.event.description or done.event.media_path}"


def _check_evict(values: Values) -> None:
    if "before" in values and "older_than" in values:
        raise typer.BadParameter("--before and --older-than say the same thing. Give one of them.")
    if not values.keys() & {"before", "older_than", "larger_than"}:
        raise typer.BadParameter(
            "without --before, --older-than or --larger-than everything would be forgotten. Give one of them."
        )
    age = values.get("older_than")
    if age is not None and not re.fullmatch(r"(?=0*[1-9])[0-9]{1,9}[mhdw]", age):
        raise typer.BadParameter(
            f"{age!r} is no age. Give whole minutes, hours, days or weeks: 30m, 12h, 90d, 4w."
        )


def _evict(asked: CommandRun) -> Any:
    age = asked.pop("older_than")
    gone = asked.call(**({} if age is None else {"before": age}))
    asked.words = f"evicted {len(gone)}{': ' if gone else ''}{', '.join(gone)}."
    return {"evicted": gone}


def _check_erase(values: Values) -> None:
    if "yes" not in values:
        if not sys.stdin.isatty():
            raise typer.BadParameter("there is no terminal to confirm at. Give --yes to erase all the same.")
        typer.confirm(f"Erase {values['id']} for good?", abort=True, err=True)


def _erase(asked: CommandRun) -> Any:
    asked.pop("yes")
    asked.call()
    asked.words = f"erased {asked.values['id']}; the reason stays: {asked.values['reason']}"
    return {"erased": asked.values["id"]}


def _forget(asked: CommandRun) -> Any:
    """Show what forgetting a person would erase, and erase it where that is confirmed."""
    is_sure = asked.pop("yes")
    found = asked.call()
    if found.applied or found.is_changed or not found.ids:
        asked.is_refused = found.is_changed
        return found
    if not is_sure:
        if asked.as_json or not sys.stdin.isatty():
            return found
        common.say(str(found), err=True)
        typer.confirm("Erase this for good?", abort=True, err=True)
    return asked.call(plan=found.plan)


def _resolve(asked: CommandRun) -> Any:
    one, other = asked.pop("one", "other")
    done = asked.call(asked.store.contradiction(one, other))
    words = "both stand" if done.decision == "both" else f"{done.decision} is kept"
    asked.words = f"{done.source.id} and {done.target.id}: {words}."
    return done


def _memorize(asked: CommandRun) -> Any:
    from graphstore.imports.memobrain import whole_messages

    file, timezone = asked.pop("messages", "timezone")
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return asked.call(whole_messages(raw, "standard input" if file == "-" else file, timezone))


def _memorized(asked: CommandRun, done: Any) -> str:
    lines = [f"memorized {node.id}: {node.text}" for node in done.nodes]
    return (
        "\n".join(lines + [f"{link.source} supersedes {link.target}" for link in done.links])
        or "nothing to memorize."
    )


def _remember(asked: CommandRun) -> Any:
    from graphstore.memory.memory import Memory

    return Memory(asked.store, asked.pop("embedder")).remember(**asked.values)


def _reembed(asked: CommandRun) -> Any:
    from graphstore.memory.memory import Memory

    with common.progress_bar("embedding") as progress:
        done = Memory(asked.store, asked.pop("embedder")).reembed(progress)
    asked.words = f"embedded {done:,}."
    return {"embedded": done}


def _embedder(asked: CommandRun) -> Any:
    from graphstore.memory import embedders
    from graphstore.memory.memory import Memory
    from graphstore.store.registry import Elsewhere

    name, off = asked.pop("name", "off")
    if name or off:
        embedders.set_embedder(asked.store, None if off else name)
    if name and not isinstance(asked.store, Elsewhere):
        with common.progress_bar("embedding") as progress:
            Memory(asked.store).reembed(progress)
    return asked.call()


def _lifecycle(asked: CommandRun) -> Any:
    return asked.ask("lifecycle.due" if asked.pop("dry_run") else "lifecycle.run", **asked.values)


def _check_working(values: Values) -> None:
    done = values.keys() & {"set", "append", "clear"}
    if len(done) > 1:
        raise typer.BadParameter("Give one of --set, --append and --clear.")
    if done:
        _refuse_time("--valid and --tx are for reading. The past is not written.")(values)


def _working(asked: CommandRun) -> Any:
    from graphstore.context import working

    text, more, clear = asked.pop("set", "append", "clear")
    place = (asked.values["user"], asked.values.get("thread"))
    if clear:
        done = working.clear(asked.store, *place)
        asked.words = "cleared" if done else "nothing was there"
        return {"cleared": done}
    if text is not None or more is not None:
        return (working.append if text is None else working.set)(
            asked.store, *place, more if text is None else text
        )
    return asked.call()


def _merge(asked: CommandRun) -> Any:
    decide, rest = asked.pop("decide", "every")
    sides = {}
    for pair in decide or ():
        id, _, side = pair.rpartition("=")
        if not id or side not in ("trunk", "branch"):
            raise typer.BadParameter(f"{pair!r} is no decision. Give ID=trunk or ID=branch.")
        sides[asked.whole(id)] = side
    done = asked.call(decide=lambda found: sides.get(found.id, rest if rest in found.choices else None))
    asked.is_refused = not done.merged
    return done


def _merge_store(asked: CommandRun) -> Any:
    with common.progress_bar("importing") as progress:
        asked.values["progress"] = progress
        return _merge(asked)


def _bundle(asked: CommandRun) -> Any:
    file, since = asked.pop("file", "since")
    count = asked.store.export(file, since=since)
    asked.words = f"{file}, {count} lines. Merge it elsewhere: graphstore merge-store STORE {file}"
    return {"bundle": str(file), "lines": count}


def _pull(asked: CommandRun) -> Any:
    if not hasattr(asked.reader, "pull"):
        raise typer.BadParameter("pull is done on a branch. Name one before the command: --branch NAME.")
    return _merge(asked)


def _branch(asked: CommandRun) -> Any:
    info = asked.call().info
    asked.words = f"branch {info.name} begins with what was known at {info.forked_at:%Y-%m-%d %H:%M:%S}Z."
    return info


def _delete_branch(asked: CommandRun) -> Any:
    asked.call()
    asked.words = f"deleted branch {asked.values['name']}."
    return {"deleted": asked.values["name"]}


# ---- whole stores and files -------------------------------------------------------------------


def _init(asked: CommandRun) -> Any:
    stats = asked.store.stats()
    asked.words = f"{common.shown(asked.path)} is a store, {stats['transactions']} transactions."
    return stats


def _check_retention(values: Values) -> None:
    if "forget_none" in values and len(values) > 1:
        raise typer.BadParameter("--forget-none lifts every limit; it takes no --days and no --bytes.")


def _retention(asked: CommandRun) -> Any:
    if asked.pop("forget_none"):
        asked.store.set_retention()
    elif asked.values:
        asked.store.set_retention(**{**asked.store.retention, **asked.values})
    return asked.store.retention


def _kept(asked: CommandRun, kept: Any) -> str:
    from graphstore.values.time_range import plural

    limits = [] if kept["days"] is None else [f"for {plural(kept['days'], 'day')}"]
    if kept["bytes"] is not None:
        limits.append(f"while the journal is within {kept['bytes']:,} bytes")
    return f"events are kept {' and '.join(limits)}." if limits else "everything is kept."


_RANKS = "CLASS=NUMBER, such as user=3"


def _trust(asked: CommandRun) -> Any:
    wanted = {}
    for name, rank in common.pairs(asked.pop("ranks"), "rank", _RANKS):
        if not rank.lstrip("-").isdigit():
            raise typer.BadParameter(f"'{name}={rank}' is no rank. Give {_RANKS}.")
        wanted[name] = int(rank)
    if wanted:
        asked.store.set_trust({**asked.store.trust, **wanted})
    return asked.store.trust


def _without(asked: CommandRun) -> Any:
    names = ("source", "author", "id", "tx")
    return asked.store.without(**{name: asked.pop(name) for name in names}).counterfact


def _prices(asked: CommandRun) -> Any:
    if (table := asked.pop("table")) is not None:
        from graphstore.sessions import sessions

        return sessions.set_prices(asked.store, table)
    return asked.ask("sessions.prices")


def _languages(asked: CommandRun) -> Any:
    if wanted := asked.pop("names"):
        asked.store.set_languages(wanted)
    return asked.store.languages


def _import(asked: CommandRun) -> Any:
    source = asked.values.get("path") or asked.values.get("source") or asked.values.get("folder")
    with common.progress_bar(f"importing {source}") as progress:
        done = asked.call(progress=progress)
    asked.is_refused = done.totals().is_refused
    return done


def _ingest(form: str | None) -> Callable[[CommandRun], Any]:
    def act(asked: CommandRun) -> Any:
        from graphstore.sessions import sessions

        follow, every, path = asked.pop("follow", "every", "path")
        how = {"analyze": sessions.builtin, **_asking_a_model(asked), **asked.values, "format": form}
        if follow:
            following = sessions.Following(asked.store, path, **how)
            with common.exits_on_sigterm():
                sessions.follow(following, asked.report, every=2.0 if every is None else every)
        with common.progress_bar(f"importing {path}") as progress:
            done = sessions.ingest(asked.store, path, progress=progress, **how)
        asked.is_refused = done.totals().is_refused
        return done

    return act


def _asking_a_model(asked: CommandRun) -> dict[str, Any]:
    """The analyser that asks the model of a service, where one is named."""
    url, model, budget = asked.pop("analyzer_url", "analyzer_model", "analyzer_budget")
    client = common.chat_client(url, model, "--analyzer-url and --analyzer-model")
    if client is None:
        return {}
    from graphstore.sessions import sessions

    return {"analyze": sessions.ModelAnalyser(client, budget=budget)}


def _reanalyze(asked: CommandRun) -> Any:
    with common.progress_bar("analysing") as progress:
        return asked.call(progress=progress)


def _index_soul(asked: CommandRun) -> Any:
    done = asked.call()
    asked.is_refused = bool(done.problems)
    return done


def _hook(asked: CommandRun) -> Any:
    from graphstore.cli import hooks

    return hooks.change(asked)


# ---- the commands -----------------------------------------------------------------------------

_ROWS = {
    "format": Help("How to print the rows. [table]", type="table|json|csv"),
    "output": Help("Write them to a new .parquet, .csv or .jsonl instead.", "FILE", type="text", flag="-o"),
}
_PARAM = Help("A parameter, $NAME in the text (may be repeated).", "NAME=VALUE", type="many")
_STORAGE = Help(
    "A setting of the object store, such as AWS_ENDPOINT_URL=…, beside those of the environment (may be repeated).",
    "KEY=VALUE",
    type="many",
)
_ADDRESS = Help("Where the tables are: a folder, or s3://bucket/path.", "URI", is_required=True)
_OFTEN = Help("How often to look for what is new. [1]", "SECONDS", type="seconds")
_EXPORTED = (
    "The whole store; its events as a Gasoline log, its traces as OTLP, its sessions as JSON files; the graph of a "
    "view (graphml, gexf, node-link, neo4j-csv, neo4j-cypher); or the whole history up to --tx (parquet, delta, gexf-timeline, prov-json, "
    "prov-xml, prov-n, prov-o). [graphstore]"
)
_LAST, _WHY = Help("At most so many, the newest."), Help("Why it was decided so.", "WHY")
_SINCE = Help("1h, 7d, 2w, a time, or A..B.", "WINDOW")
_SPAN = {"since": Help("Begun then or later.", "TIME"), "until": Help("Begun before.", "TIME")}
_FORMAT = {"table": "table|json|csv", "changes": "table|cloudevents"}
_EVERY = Help("Only nodes of this kind.")
_TOPIC = {"scope": Help("Only nodes of this scope.")}
_MAPPED = {
    "path": Help("One JSON object a line.", "FILE"),
    "mapping": Help("", type="file", is_required=True),
}
_SESSION_FILES = {
    "analyzer_url": Help("Ask a language model: a service with OpenAI's chat completions.", "URL"),
    "analyzer_model": Help(
        "The name of its model. The key is that of GRAPHSTORE_LLM_KEY or OPENAI_API_KEY.", "NAME"
    ),
    "analyzer_budget": Help("Tokens it may take in all.", type="int"),
    "path": Help("A session file, or a folder with such files.", "PATH", type="place"),
    "follow": Help("Go on: print what is written from now on, until interrupted.", type="bool"),
    "every": Help("How often to look. [2]", "SECONDS", type="float"),
}
_LISTED = (
    # read
    Command("search", READ, "Find things by words, and what is linked to them.", "recall.recall", _search, old="recall",
        without="fan_out hop_weight rrf along direction", words={
            "text": Help("Some words.", "TEXT"), "kinds": Help("Only things of this kind or type (may be repeated)."),
            "tag": Help("Only what has this tag (may be repeated)."), "key": Help("Only of this slot (may be repeated)."),
            "scope": Help("Only of this scope (may be repeated)."), "author": Help("Only what they said (may be repeated)."),
            "source": Help("Only from what begins so (may be repeated)."),
            "standing": Help("Only what stands so; any: also what does not stand (may be repeated)."),
            "since": Help("Only what began or happened from then on.", "TIME"), "until": Help("Only what began or happened before then.", "TIME"),
            "recorded_since": Help("Only what was recorded from then on.", "TIME"), "recorded_until": Help("Only what was recorded before then.", "TIME"),
            "decay": Help("What is old counts less: half after so many days.", "DAYS", type="float"),
            "layers": Help("Only what memory has in this layer (may be repeated).", flag="--layer", type="many"),
            "user": Help("Only what memory has of this user, and of no user."), "embedder": EMBEDDER}),
    Command("get", READ, "One thing with all that touches it.", "inspect", old="show"),
    Command("links", READ, "What a thing is linked to, both ways.", "links_from", _links, words={
        "direction": Help("Which way. [both]", type="out|back|both")}),
    Command("what-superseded", READ, "What took its place, by whom and why.", "what_superseded", old="superseded", words={
        "id": Help("An id; ID-v1 for one version.", "ID")}),
    Command("why", READ, "What led to it.", "causes"),
    Command("effects", READ, "What it led to.", "effects"),
    Command("walk", READ, "What is around it, nearest first.", "walk"),
    Command("path", READ, "How one thing leads to another, in time.", "path", _path, words={
        "source": Help("Where the path begins.", "FROM", type="id"), "target": Help("Where it ends.", "TO"),
        "by": Help("Fewest hops, or earliest arrival.", flag="--by"), "every": Help("Every path, the fewest hops first.", flag="--all", type="bool")}),
    Command("topic", READ, "All statements about a topic: past, current and planned.", "topics.topic", show=_text, words=_TOPIC),
    Command("latest-on", READ, "What stands on a topic, since when, and what was before.", "topics.latest_on", show=_text, old="latest", words=_TOPIC),
    Command("query", READ, "Ask in Cypher, at a coordinate.", "query", _query, old="cypher", check=_check_query, places="text", without="cypher", words={
        "text": Help("What to ask; - reads standard input.", "CYPHER", type="text"),
        "recipe": Help("A question that comes with the package, instead; an unknown one lists them.", "NAME", type="text"),
        "tables": Help("The whole history, periods as columns.", type="bool"),
        "param": Help("A parameter (may be repeated).", "NAME=VALUE", type="many"),
        **_ROWS}),
    Command("brief", READ, "What an agent should know before it works.", "brief", _brief, _as_it_is(str), places="", without="valid tx", at=True,
        writes=lambda values: "agent" in values, words={
            "agent": Help("Whose briefing it is: this visit is recorded under its name. [nobody's]", "NAME"),
            "budget_tokens": Help("At most so long. [2000]"), "user": Help("Without what names another user."),
            "project": Help("Without what names another project: its path, or the end of it."), "path": Help("Without what names another file or folder.", "PATH"),
            "scope": Help("Only what is in this scope or below."), "since": Help("What changed since then. [the last visit, or 7d]")}),
    Command("review", READ, "What somebody should look at: doubts, contradictions, what may be one thing.", "", _review, _written("review"), at=True, words={
        "settled": Help("Also what is decided, or over.", type="bool"), "limit": Help("At most so many of each. [100]", type="int")}),
    Command("grounds", READ, "What it rests on, and how much of that still stands.", "grounds", show=_text),
    Command("shaky", READ, "What rests on something that has fallen.", "shaky", show=_or("nothing is shaky."), words={
        "limit": Help("At most so many. [100]")}),
    Command("readers-of", READ, "Whose recorded answers contained a thing, and when.", "readers_of", show=_or("nobody's, as far as it is recorded."), places="id", words={
        "id": Help("An id; of one the store made a unique beginning (6 characters or more). [what --tx invalidated]", "ID", type="id"),
        "tx": Help("Only answers before that transaction.", "TX", "--tx")}),
    Command("sql", READ, "Ask the whole history in the SQL of DuckDB.", "",
        file_commands.sql, places="text", words={
        "text": Help("What is asked of nodes, versions, events, occurrences, links, operations, and of node_as_of(valid, tx), link_as_of, event_as_of, "
            "succession_as_of(id, valid, tx) and node_diff; - reads it from standard input.", "TEXT", is_required=True),
        "param": _PARAM, "tx": Help("As the store knew it then. [now]", "TIME"), "output": _ROWS["output"]}),
    # write
    Command("add-node", WRITE, "Add something new.", "add_node", _add, old="add", words={
        "id": Help("Its id. [a new one]", type="text"), "kind": Help("What sort of thing: fact, decision, file, …", "KIND")}),
    Command("revise", WRITE, "Give a better description, for all or part of its time.", "revise", show=_node("revised"), words={
        "tags": Help("A tag (may be repeated). [as before]")}),
    Command("amend", WRITE, "Change single fields, where it holds.", "amend", show=_node("amended")),
    Command("supersede", WRITE, "The world moved on: OLD was true until NEW began.", "supersede", _supersede, without="more", words={
        "old": Help("What is replaced: one id or several.", "OLD...", type="ids"), "by": Help("", type="id")}),
    Command("end", WRITE, "It was true until then.", "end", _end("ended")),
    Command("retract", WRITE, "It was never true, over all or part of its time.", "retract", _end("retracted"), words={
        "reason": Help("Why it should not have been recorded.", "WHY")}),
    Command("undo", WRITE, "Take back one transaction, or all since one.", "undo", _undo, places="tx", without="author", words={
        "tx": Help("Its tx, as changes shows it.", "TX"), "since": Help("Instead: this transaction and all later ones, as after a wrong clock.", "TX"), "reason": Help("Why it should not have been written.", "WHY")}),
    Command("confirm", WRITE, "It still holds, whatever it rests on.", "confirm", _confirm, words={"reason": Help("What was looked at.", "WHY")}),
    Command("fold", WRITE, "Sum up several things in one.", "fold", _fold, _node("folded into")),
    Command("join", WRITE, "Two ids are one thing: ID means INTO from now on.", "join", show=lambda asked, link: f"joined {link.target} into {link.source}.", words={
        "id": Help("The id that means the other one from now on.", "ID"), "into": Help("The id whose content counts.", "ID", type="id"), "reason": _WHY}),
    Command("split", WRITE, "Take a join back: an id is a thing of its own again.", "split", show=_node("split off"), words={
        "reason": Help("Why they are two things.", "WHY")}),
    Command("consolidate", WRITE, "Propose what to sum up in one, or do it.", "consolidation.consolidate", _consolidate, words={
        "topic": Help("Only what has this tag or key.", flag="--topic"),
        "apply": Help("Fold them; without it nothing is written.", type="bool")}, writes=lambda values: "apply" in values, at=False),
    Command("link", WRITE, "Join things: SOURCE KIND TARGET, and more of the same.", "link", _link, places="source kind target also", without="id", words={
        "source": Help("The id the sentence begins with.", "SOURCE", type="id"), "kind": Help("supersedes, caused_by, contradicts, …", "KIND"),
        "also": Help("Further links, each as A KIND B. All are recorded, or none.", "A KIND B...", type="many")}),
    Command("unlink", WRITE, "Stop believing a link, or all that say so.", "unlink", _unlink,
        lambda asked, found: f"unlinked {found['unlinked']}.", places="link_id", words={
        "source": Help("Instead of LINK_ID: the id the sentence begins with.", "SOURCE", type="id"), "kind": Help("Its kind.", "KIND"),
        "target": Help("The id it ends with.", "TARGET", type="id")}),
    Command("record-event", WRITE, "Record that something happened.", "record_event", show=_event, old="event", places="type description", words={
        "type": Help("What sort of event: commit, error, deploy, …", "TYPE", is_required=True),
        "description": Help("What happened.", "DESCRIPTION", is_required=True), "id": Help("Its id. [a new one]", type="text"),
        "authorized": Help("Whether it was authorized.", flag="--authorized/--unauthorized")}),
    Command("record-message", WRITE, "Record a message on the timeline.", "timeline.record_message", show=_message, old="message", places="type text", words={
        "type": Help("TEXT, AUDIO, IMAGE, SYSTEM, or another.", "TYPE"), "text": Help("What it says; may be empty beside a medium.", "TEXT"),
        "id": Help("Its id. [a new one]", type="text"), "authorized": Help("It was not authorized.", flag="--unauthorized"),
        "related_to": Help("What it is about (may be repeated).", "ID")}),
    Command("memorize", WRITE, "Record messages, with the dates and tags in them.", "topics.memorize", _memorize, _with_warnings(_memorized), without="kind", words={
        "messages": Help("Messages: a JSON list, or an object a line; - standard input.", "FILE", type="text"), "timezone": Help("")}),
    Command("resolve", WRITE, "Decide a contradiction.", "resolve", _resolve, places="one other", words={
        "one": Help("One of two that contradict each other.", "ONE", "", "id", True), "other": Help("The other.", "OTHER", "", "id", True),
        "reason": _WHY}),
    Command("sweep", WRITE, "Ask for links among what is new, and forget what is old.", "sweep", places="", words={
        "extractor": Help("What proposes links; none: upkeep only.", "MODULE:FUNCTION", type="function"),
        "judge": Help("What judges whether alike things contradict each other.", "MODULE:FUNCTION", type="function"),
        "since": Help("Ask about what was recorded after. [the last sweep]", "TIME")}),
    Command("evict", WRITE, "Forget what is too old to keep: tombstones stay.", "evict", _evict, check=_check_evict, without="ids reason", words={
        "before": Help("What happened last before then.", "TIME"), "kinds": Help("Only events of this type, nodes of this kind (may be repeated)."),
        "older_than": Help("What is older: 90d, 4w, 12h.", "AGE")}),
    Command("erase", WRITE, "Remove a content from every file, for good.", "erase", _erase, without="author", check=_check_erase, words={
        "id": Help("The whole id.", "ID", type="text"), "reason": Help("Why it must not be kept.", "WHY"), "yes": Help("Do not ask.", type="bool")}),
    Command("forget", WRITE, "Forget a person: show what would be erased and what stays, then erase it.", "forget", _forget, _text, without="author", words={
        "who": Help("Their id, or a name.", "WHO"), "names": Help("A further name, e-mail address or handle (may be repeated).", flag="--name"),
        "mentions": Help("Also what only names them."), "scope": Help("Only what is there and below. [everywhere]"),
        "plan": Help("Erase exactly what was shown with this plan.", "PLAN"), "reason": Help("Why; it stays, so it should not name them.", "WHY"),
        "yes": Help("Do not ask: erase what is found.", type="bool")}),
    # time
    Command("history", TIME, "Every version of a node over all valid time.", "history",
        lambda asked: asked.ask("versions" if asked.pop("every") else "history", **asked.values),
        _history,
        words={"every": Help("Also what was once believed.", flag="--all", type="bool")}),
    Command("link-history", TIME, "Every period over which a link is believed.", "link_history", words={
        "source": Help("The id the sentence begins with.", "SOURCE", type="id"), "kind": Help("supersedes, caused_by, contradicts, …", "KIND")}),
    Command("diff", TIME, "What changed between two versions, field by field.", "diff"),
    Command("timeline", TIME, "Messages, newest first, a page at a time.", "timeline.messages", _timeline, _written("timeline"), check=_check_cursor, words={
        "since": Help("From then on: a time, or 2h, 7d, 4w ago.", "TIME"), "limit": _LAST,
        "authorized": Help("Only those that were, or were not.", flag="--authorized/--unauthorized"), "text": Help("Only what says these words.", "WORDS"),
        "cursor": Help("Go on after the page that ended with it.")}),
    Command("events", TIME, "What happened lately, and what keeps coming back.", "events.history_report", show=_written("report"), words={
        "since": _SINCE, "timezone": Help("Of the hours and days in the report.", "ZONE"), "limit": _LAST, "related_to": Help("Only what is linked with it.", "ID", type="id"),
        "status": Help("Only those that are active, resolved or superseded."), "every": Help("Messages, spans and outcomes too."),
        "origin": Help("Only what the system or an agent told."), "agent": Help("Only what this agent told.")}),
    Command("trace", TIME, "The spans of a trace as a tree.", "timeline.trace", _trace, words={
        "trace_id": Help("A trace's id; of 32 hexadecimal digits a unique beginning (6 or more).", "ID")}),
    Command("over", TIME, "Counts, sums, values or changes at each step of a time.", "", _over, at=True, places="what", words={
        "what": Help("What is asked at each step.", "WHAT", type="count|sum|avg|min|max|first|last|changes", is_required=True),
        "kind": Help("Only nodes of this kind."), "field": Help("Of which field."), "since": Help("From then on. [30d]", "TIME"), "until": Help("Before then. [now]", "TIME"),
        "step": Help("Such as 1 day, 1 month. [1 day]"), "axis": Help("Along which time. [valid]", type="valid|tx"), "by": Help("For each value of this field."),
        **_ROWS}),
    Command("changes", TIME, "What each transaction did, oldest first.", "changes", _changes, words={
        "format": Help("A table, or a CloudEvent a line for each transaction. [table]", type="table|cloudevents")}),
    Command("snapshot", TIME, "Give the present coordinate a name, for ever.", "snapshot", words={"name": Help("The name, for --as-of.", "NAME")}),
    Command("snapshots", TIME, "The coordinates that have a name, for --as-of.", "snapshots", show=_or("no coordinate has a name.")),
    Command("branch", TIME, "Begin a line of belief of its own.", "branch", _branch),
    Command("branches", TIME, "The branches there are.", "branches"),
    Command("compare", TIME, "What a branch and the trunk differ in, now.", "compare", lambda asked: asked.store.compare(asked.values["name"]), words={
        "name": Help("The branch's name.", "NAME", is_required=True)}, at=False),
    Command("without", TIME, "What would be believed had something never been recorded: the difference.", "without",
        lambda asked: _without(asked), _text, places="", words={
        "source": Help("All that gives this source.", "NAME"), "author": Help("All that they did.", "NAME"), "id": Help("All that was done to it.", "ID"),
        "tx": Help("All of this transaction.", "TX")}),
    Command("merge", TIME, "Bring a branch over, all or nothing.", "merge", _merge, _text, words={
        "decide": Help("Whose word holds of it: trunk or branch (may be repeated).", "ID=SIDE", type="many"),
        "every": Help("Whose word holds of all the others.", flag="--all", type="trunk|branch")}),
    Command("merge-store", TIME, "Bring another store over, all or nothing; again only what is new.", "merge_store", _merge_store, _text, words={
        "other": Help("The folder of the other store, or a bundle of it.", "OTHER", type="place"), "name": Help("The branch on which it is here. [that of the folder]"),
        "decide": Help("Whose word holds of it: trunk (this store's) or branch (the other's; may be repeated).", "ID=SIDE", type="many"),
        "every": Help("Whose word holds of all the others.", flag="--all", type="trunk|branch")}),
    Command("bundle", STORES, "Write a file for `merge-store` on another machine.", "", _bundle, places="file", words={
        "file": Help("The file to write.", "FILE", type="path", is_required=True), "since": Help("Only what was recorded after that tx. [everything]", "TX")}),
    Command("pull", TIME, "Take over on a branch what the trunk has.", "pull", _pull, _text, words={
        "decide": Help("Whose word holds of it: trunk or branch (may be repeated).", "ID=SIDE", type="many"),
        "every": Help("Whose word holds of all the others.", flag="--all", type="trunk|branch")}),
    Command("delete-branch", TIME, "Delete a branch; what was merged of it stays.", "delete_branch", _delete_branch),
    # sessions
    Command("sessions list", SESSIONS, "The sessions that are known, the first first.", "sessions.listed", words={
        "project": Help("Only those of this folder."), **_SPAN, "every": Help("Sub-agents and start-ups too.", flag="--all")}),
    Command("sessions work-on", SESSIONS, "What was done, by day and session.", "sessions.work_on", show=_text, old="work", places="project", words={
        "project": Help("Its path, or the end of it. [all]", "PROJECT"), **_SPAN}),
    Command("sessions search", SESSIONS, "Which pieces of work say some words.", "sessions.search", show=_text, words={
        "text": Help("All these words.", "TEXT"), **_SPAN, "limit": Help("At most so many, the latest.")}),
    Command("sessions files", SESSIONS, "Who touched a file, when and why.", "sessions.files", show=_text, words={
        "path": Help("Its path, or the end of it.", "PATH"), **_SPAN}),
    Command("sessions find-by-entry", SESSIONS, "The segment that holds an entry of a session.", "sessions.find_by_entry", words={
        "session": Help("The session's own id.", "SESSION"), "entry": Help("The entry's id.", "ENTRY")}),
    Command("sessions decisions", SESSIONS, "Which decisions stand.", "sessions.decisions", show=_text, words=_SPAN),
    Command("sessions lessons", SESSIONS, "Which lessons apply, the surest first.", "sessions.lessons", show=_text, places="tags", words={
        "tags": Help("Lessons with any of these. [all]", "TAG..."), **_SPAN}),
    Command("sessions recurring-errors", SESSIONS, "Which errors recur across sessions.", "sessions.recurring_errors", show=_text, old="errors", words={
        "at_least": Help("In so many sessions."), **_SPAN}),
    Command("sessions lineage", SESSIONS, "What a session was forked from, and what from it.", "sessions.lineage", show=_text, words={
        "session_or_node": Help("The id of a session or a segment.", "ID", type="id")}),
    Command("sessions costs", SESSIONS, "What sessions took: money and tokens.", "sessions.costs", show=_text, words={
        "by": Help("What to sum by.", type="project|model|session|day"), **_SPAN}),
    Command("sessions correct", SESSIONS, "Correct what an analyser said of a segment.", "sessions.correct", show=_node("corrected"), words={
        "id": Help("The segment.", "ID", type="id"), "changes": Help('Such as {"content": {"outcome": "failed"}}.', "OBJECT", type="json")}),
    Command("sessions prices", SESSIONS, "What models cost: shown, or set.", "sessions.prices", _prices, _as_it_is(str), places="table", words={
        "table": Help('Instead of those set: {"claude-*": {"input": 3, "output": 15}}, dollars a million tokens.', "OBJECT", type="json")}, writes=bool),
    Command("connect", SESSIONS, "Link segments that have to do with each other.", "sessions.connect", show=_text, without="now"),
    Command("reanalyze", SESSIONS, "Describe sessions anew, from their files.", "sessions.reanalyze", _reanalyze, _text),
    Command("sessions stats", SESSIONS, "What a session file holds, and what the session took. "
        "What it copied from its parent is counted apart.", "",
        file_commands.session_stats,
        places="file", on="", words={
            "file": Help("A session file of pi or Claude Code.", "FILE", type="file", is_required=True),
            "parent": Help("The file it was forked from.", type="file")}),
    # memory
    Command("remember", MEMORY, "Keep a text in memory.", "memory.remember", _remember, _with_warnings(_node("remembered")), words={
        "text": Help("What to keep in memory.", "TEXT"), "key": Help("The slot it is the value of: the one before ends."), "embedder": EMBEDDER}),
    Command("working", MEMORY, "The scratchpad of a user and thread, read or written.", "working.get", _working,
        _as_it_is(lambda found: "nothing" if found is None else found.text), _check_working, places="", words={
            "user": Help("Whose it is.", "USER"), "thread": Help("In which thread. [the user's, in every thread]"),
            "set": Help("Hold this from now on.", "TEXT"), "append": Help("Add a line.", "TEXT"), "clear": Help("Hold nothing any more.", type="bool")},
        writes=lambda values: bool(values.keys() & {"set", "append", "clear"})),
    Command("context", MEMORY, "What an agent is given before it answers.", "context.context", _context,
        _as_it_is(lambda found: found.text.removesuffix("\n")), without="k conversation", places="", words={
            "user": Help("Whose it is.", "USER"), "embedder": EMBEDDER}),
    Command("lifecycle", MEMORY, "Evict what memory has kept long enough.", "lifecycle.run", _lifecycle, words={
        "dry_run": Help("Only say what would go.", type="bool")}, writes=lambda values: "dry_run" not in values),
    Command("embedder", MEMORY, "What finds texts by their meaning too: shown, or set.", "memory.embedding", _embedder, _as_it_is(str), places="name", words={
        "name": Help("Use this one from now on, and make its vectors: wordllama, fastembed or openai (with a model).", "EMBEDDER"),
        "off": Help("Use none: texts are found by their words alone.", type="bool")}, writes=bool),
    Command("reembed", MEMORY, "Make the missing vectors of the store's model, or of one that is named.", "", _reembed, words={
        "embedder": EMBEDDER}, places="", writes=lambda values: True),
    Command("memory stats", MEMORY, "What memory holds of each layer.", "memory.stats", _memory_stats, at=True),
    Command("index soul", MEMORY, "Read the files an agent lives by.", "memory.index_soul", _index_soul, _as_it_is(str), words={
        "user": Help("Whose agent lives by them. [everybody's]")}),
    # stores
    Command("init", STORES, "Make an empty store.", "", _init, creates=True, writes=lambda values: True),
    Command("stats", STORES, "How much a store holds.", "stats"),
    Command("retention", STORES, "How long events are kept: shown, or set.", "set_retention", _retention, _kept, _check_retention, words={
        "forget_none": Help("Keep everything for ever.", type="bool")}, writes=bool),
    Command("trust", STORES, "How far each class of sources is trusted: shown, or set.", "trust", _trust, _or("every source is trusted alike."),
        places="ranks", words={"ranks": Help("Rank these source classes anew.", "CLASS=RANK...", type="many")}, writes=bool),
    Command("languages", STORES, "The languages texts are searched in: shown, or set.", "languages", _languages, _one_a_line, places="names", words={
        "names": Help("Search in these, as Snowball names them.", "LANGUAGE...", type="many")}, writes=bool),
    Command("import git", STORES, "A repository's history: files, versions, commits.", "imports.import_git", _import, _text, without="ref", creates=True, words={
        "path": Help("The repository.", "PATH")}),
    Command("import jsonl", STORES, "Records, one JSON object a line.", "imports.import_jsonl", _import, _text, creates=True, places="path", words=_MAPPED),
    Command("import csv", STORES, "Records, one row each.", "imports.import_csv", _import, _text, creates=True, places="path", words={
        **_MAPPED, "path": Help("A table with a header.", "FILE")}),
    Command("import gasoline", STORES, "The event log of Gasoline, with links and retention.", "gasoline.import_gasoline", _import, _text, creates=True, words={
        "path": Help("An events.jsonl, or a folder with .gasoline.", "PATH")}),
    Command("import otlp", STORES, "Traces of OpenTelemetry: an event for each span.", "otlp.import_otlp", _import, _text, creates=True, words={
        "source": Help("OTLP/JSON, or protobuf bytes.", "FILE", type="file")}),
    Command("import messages", STORES, "Messages of chats, with the dates and tags in them.", "memobrain.import_messages", _import, _text, creates=True, words={
        "path": Help("Messages: a JSON list, or an object a line.", "FILE")}),
    Command("import memobrain", STORES, "The thoughts and edges of a MemoBrain graph.", "memobrain.import_memobrain", _import, _text, creates=True, words={
        "path": Help("A graph that MemoBrain saved as JSON.", "FILE")}),
    Command("import pi-brain", STORES, "Agent sessions as JSON files, every version of each.", "pi_brain.import_pi_brain", _import, _text, creates=True, words={
        "folder": Help("One with YYYY/MM/…-v1.json files.", "FOLDER")}),
    Command("import pi", STORES, "Sessions of pi: a node per session and segment.", "sessions.ingest", _ingest("pi"), _text, creates=True,
        without="format", words=_SESSION_FILES),
    Command("import sessions", STORES, "Sessions of any agent: pi, Claude Code, Codex, Copilot CLI, Gemini CLI, OpenCode.", "sessions.ingest", _ingest(None), _text,
        creates=True, without="format", words=_SESSION_FILES),
    Command("import claude", STORES, "Sessions of Claude Code, those of sub-agents included.", "sessions.ingest", _ingest("claude"), _text, creates=True,
        without="format", words=_SESSION_FILES),
    Command("export", STORES, "Write the whole store to a dump that `restore` reads; "
        "or, with --format, what other tools read.", "",
        file_commands.export,
        check=file_commands.check_export, places="dump", at=True, words={
            "dump": Help("Where to write it; with --format delta also s3://bucket/path.", "DUMP", is_required=True),
            "format": Help(_EXPORTED, type="|".join(common.EXPORT_FORMATS)), "storage": _STORAGE}),
    Command("restore", STORES, "Make a new store from a dump.", "",
        file_commands.restore, places="dump", on="place", words={
        "dump": Help("What `export` wrote.", "DUMP", type="place", is_required=True)}),
    Command("copy", STORES, "Copy every line of a store into another: a folder, or PostgreSQL by its address, and check it. "
        "What is there already is gone on from.", "",
        file_commands.copy,
        places="source target", on="", words={
            "source": Help("A folder, or the address of a store in PostgreSQL, of release 0.1 too.", "FROM", is_required=True),
            "target": Help("A folder or an address: a new store, or one with an earlier copy.", "TO", type="text", is_required=True)}),
    Command("lake sql", STORES, "Ask Delta tables of a store in the SQL of DuckDB.", "",
        file_commands.lake_sql, places="uri text", on="", words={
        "uri": _ADDRESS,
        "text": Help("What is asked, of the tables and views that `graphstore sql` has.", "TEXT", is_required=True),
        "param": _PARAM, "storage": _STORAGE}),
    Command("verify", STORES, "Check every line, digest and table of a store. "
        "Exit code 1 when something is wrong.", "",
        file_commands.verify, on="place"),
    Command("compact", STORES, "Give the free pages of a store's file back. "
        "It needs twice the room of the file for a moment.", "",
        file_commands.compact,
        on="place"),
    Command("rebuild", STORES, "Make the rows of the ledger anew from its chain, and the graph tables with them. "
        "Only copies are made: nothing that was recorded changes.", "",
        file_commands.rebuild, on="place"),
    Command("lake follow", STORES, "Append what is recorded to Delta tables, until interrupted. "
        "Killed and started again it goes on: each row is there once.",
        "", file_commands.lake_follow, places="uri", words={"uri": _ADDRESS, "every": _OFTEN, "storage": _STORAGE}),
    Command("project", STORES, "Keep the graph of a Bolt server, such as Neo4j, as the store has it, until interrupted: at a coordinate, or the whole "
        "history. NEO4J_USERNAME and NEO4J_PASSWORD of the environment let in. "
        "Killed and started again it goes on: each row is there once.", "",
        file_commands.project, check=file_commands.check_project, places="uri", at=True, words={
            "uri": Help("The Bolt server, such as bolt://host:7687 or neo4j+s://host.", "URI", is_required=True),
            "history": Help("The whole history with both periods, and no coordinate.", type="bool"),
            "database": Help("Which database of the server.", "NAME"), "once": Help("Write what is new, and end.", type="bool"), "every": _OFTEN}),
    Command("demo", STORES, "Import a repository's history and ask it the five questions.", "",
        file_commands.demo, places="repository", on="", words={
        "repository": Help("A git repository. [the one here]", "REPOSITORY", type="place"),
        "folder": Help("Keep the store below this folder. [a temporary one]", type="path"),
        "team": Help("Instead: two weeks of a made-up team, to look at with `graphstore page`.", type="bool")}),
    # interfaces
    Command("token add", INTERFACES, "Make a token for the server of a store and print it once: "
        "the store keeps only a hash of it.", "",
        file_commands.token_add, places="name", on="place", words={
            "name": Help("What it is revoked by.", "NAME", is_required=True),
            "scope": Help("It sees what is of this scope or below. [everything]", "PATH", type="many"),
            "rights": Help("With scopes: read or write. [read]", "read|write|admin"),
            "expires": Help("After how many days, such as 90d.", "DAYS"),
            "record_reads": Help("Record which things the answers to this token contained.", type="bool")}),
    Command("hook", INTERFACES, "Brief a coding agent when its session starts, and import the session when it ends.", "",
        _hook, places="tool action", on="", words={
            "tool": Help("claude-code, codex or gemini.", "TOOL", type="claude-code|codex|gemini", is_required=True),
            "action": Help("Write the hooks into its settings, or remove exactly these.", "install|uninstall", type="install|uninstall", is_required=True),
            "project": Help("In the settings of this project. [those of the user]", "DIR", type="path"), "user": Help("In the settings of the user.", type="bool"),
            "memory": Help("The store. [memory.gs in the project, or in the home folder]", "STORE", "--store", "path")}),
    Command("token list", INTERFACES, "The tokens made by name: rights, scopes and when they expire.", "",
        file_commands.token_list,
        on="place", show=lambda asked, found: file_commands.token_lines(found)),
    Command("token revoke", INTERFACES, "Let a token in no more, from the next request on.", "",
        file_commands.token_revoke, lambda asked, found: None,
        places="name", on="place", words={
        "name": Help("The name it was made by.", "NAME", is_required=True)}),
)  # fmt: skip
COMMANDS: dict[str, Command] = {command.name: command for command in _LISTED}


def _unlisted() -> Iterator[tuple[str, str]]:
    for one in COMMANDS.values():
        over, module, method = one.name.rpartition(" ")[0], *one.call.rpartition(".")[::2]
        of_method = [method] if over in ("", module) and module != one.name else []
        for name in (*one.old.split(), *of_method):
            whole = f"{over} {name.replace('_', '-')}".strip()
            if whole and whole not in COMMANDS:
                yield whole, one.name


UNLISTED: dict[str, str] = dict(_unlisted())
"""Names that are understood and not listed: those of the methods, and those that commands had before."""
