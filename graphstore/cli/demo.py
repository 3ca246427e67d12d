"""The tour: a real history taken into a store, five questions asked of it, each with the call, the time and the reason.

The history is the repository's own. Where there is none, or too short a one to have superseded anything, it is the
made-up team of `examples/`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import graphstore
from graphstore.cli import printing
from graphstore.errors import GraphStoreError, NotFoundError
from graphstore.graph.texts import text
from graphstore.show.tables import label
from graphstore.values.models import Event, Node
from graphstore.values.period import clocked, when

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

Progress = Callable[..., None]

ROOT = Path(graphstore.__file__).resolve().parents[1]
FIRST_STOP = "graphstore/values/models.py"
COMMIT_FILES_MAX = 8
"""A commit with more files than this makes a dull answer."""
SHOWN = 6
TOO_SHORT = "there is no git history here that is long enough"


@dataclass(slots=True)
class DemoAnswer:
    """A question in words and as a call, what came back, and how long that took."""

    question: str
    call: str
    value: Any
    seconds: float
    note: str = ""


@dataclass(slots=True)
class Tour:
    """Holds what the demo found: texts ready to be read, and answers with the store's own values."""

    title: str
    store: str
    kept: bool
    imported: str
    seconds: float
    subject: str
    answers: list[DemoAnswer] = field(default_factory=list)
    open_next: str = ""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Names what to ask of a store: a thing and a date, something that was superseded, a cause, an instant of knowledge, a query."""

    subject: str
    date: datetime
    replaced: str
    cause: str
    known_at: datetime
    cypher: str


def run(repository: Path | None, folder: Path | None, progress: Progress) -> Tour:
    """Import the history of `repository` (or the one around here) below `folder` (or a temporary one), and ask."""
    with _folder(folder) as below:
        kept = folder is not None
        found = _git(repository, below, kept, progress)
        return found if isinstance(found, Tour) else _example(found, below, kept, progress)


@contextmanager
def _folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="graphstore-demo-") as made:
            yield Path(made)


def _git(repository: Path | None, below: Path, kept: bool, progress: Progress) -> Tour | str:
    """The tour of a repository; or why there is none: no repository here, nothing in it was ever changed, no dulwich."""
    from graphstore.imports.records import import_git

    path = repository or next((one for one in (Path.cwd(), ROOT) if (one / ".git").exists()), None)
    if path is None:
        return TOO_SHORT
    try:
        with graphstore.open(below / "history.gs") as store:
            start = time.perf_counter()
            report = import_git(store, path, progress=progress)
            seconds = time.perf_counter() - start
            plan = _plan(store)
            if plan is None:
                return TOO_SHORT
            imported = str(report) if getattr(report, "commits", 1) else "nothing new since the last time"
            title = f"The history of {path.resolve().name}"
            tour = Tour(title, str(store.path), kept, imported, seconds, plan.subject, _ask(store, plan))
            tour.open_next = _open_next(store, plan)
            return tour
    except GraphStoreError as error:
        if repository is not None:
            raise
        return f"the git history here cannot be read: {error}"


def _example(reason: str, below: Path, kept: bool, progress: Progress) -> Tour:
    """The tour of the made-up team, with the reason why it is not a tour of the history here."""
    from graphstore.imports.records import import_jsonl

    installed = Path(graphstore.__file__).with_name("_examples")
    lines = installed if installed.is_dir() else ROOT / "examples"
    with graphstore.open(below / "team.gs") as store:
        start = time.perf_counter()
        imported = "nothing new since the last time"
        if not store.nodes(kind="decision"):
            imported = str(import_jsonl(store, lines / "team.jsonl", lines / "team.toml", progress=progress))
        seconds = time.perf_counter() - start
        at = datetime.fromisoformat
        plan = DemoPlan(
            subject="rate_limit",
            date=at("2026-02-17T00:00:00+00:00"),
            replaced="login_sessions",
            cause="login_outage",
            known_at=at("2026-02-17T00:00:00+00:00"),
            cypher=text("demo_led_to"),
        )
        title = f"What a small team knew ({reason})"
        tour = Tour(title, str(store.path), kept, imported, seconds, plan.subject, _ask(store, plan))
        tour.open_next = f"{lines / 'team.jsonl'}, the lines this came from"
        return tour


# ---- choosing what to ask ---------------------------------------------------------------------


def _plan(store: GraphStore) -> DemoPlan | None:
    files = [node for node in store.nodes(kind="file") if node.number > 1 and not node.content.get("binary")]
    if not files:
        return None
    commits = store.events(type="commit")
    subject = max(files, key=lambda node: (node.number, node.content.get("lines") or 0))
    history = store.history(subject.id)
    past = history[(len(history) - 1) // 2]
    recorded = sorted(event.tx_from for event in commits)
    half = (len(recorded) - 1) // 2
    return DemoPlan(
        subject=subject.id,
        date=_between(past.valid_from, past.valid_to),
        replaced=f"{subject.id}-v{max(1, subject.number - 3)}",
        cause=_telling_commit(commits).id,
        known_at=_between(recorded[half], recorded[half + 1] if half + 1 < len(recorded) else None),
        cypher=text("demo_most_changed"),
    )


def _between(start: datetime, stop: datetime | None) -> datetime:
    """An instant in [start, stop) that reads well: a midnight, an hour or a minute where there is one."""
    if stop is None or stop <= start:
        return start
    for unit in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)):
        since = start - datetime.min.replace(tzinfo=start.tzinfo)
        rounded = start - since % unit + unit
        if rounded < stop:
            return rounded
    return start


def _telling_commit(commits: list[Event]) -> Event:
    """The commit with the most files that can still be shown, the later one of two; else the smallest."""
    counted = [(int(event.metadata.get("files", 0)), event.occurred_at, event) for event in commits]
    small = [one for one in counted if 0 < one[0] <= COMMIT_FILES_MAX]
    return (max if small else min)(small or counted, key=lambda one: one[:2])[2]


# ---- asking -----------------------------------------------------------------------------------


def _ask(store: GraphStore, plan: DemoPlan) -> list[DemoAnswer]:
    date, known_at = when(plan.date), when(plan.known_at)
    now = store.as_of()
    then = store.as_of(valid=plan.date)
    first = _timed(
        f"What did {_name(plan.subject)} look like on {date}?",
        f'store.as_of(valid="{clocked(plan.date)}").node("{plan.subject}")',
        lambda: then.node(plan.subject),
    )
    first.note = _why(store, first.value)
    compared = _timed(
        f"What did we know on {known_at}, about that moment?",
        f'store.knowledge_at("{clocked(plan.known_at)}").compare(store.as_of())',
        lambda: store.knowledge_at(plan.known_at).compare(now),
    )
    compared.note = _learned_since(store, plan)
    return [
        first,
        _timed(
            f"What superseded {_name(plan.replaced)}?",
            f'store.what_superseded("{plan.replaced}")',
            lambda: now.what_superseded(plan.replaced),
        ),
        _timed(
            f"What did {_name(plan.cause)} cause?",
            f'store.effects("{plan.cause}")',
            lambda: now.effects(plan.cause),
        ),
        _counted(compared, len(store.knowledge_at(plan.known_at).nodes()), len(now.nodes())),
        _timed(
            "An analyst asks in Cypher, with no word about time",
            plan.cypher,
            lambda: now.query(plan.cypher).rows(),
        ),
    ]


def _timed(question: str, call: str, ask: Callable[[], Any]) -> DemoAnswer:
    start = time.perf_counter()
    value = ask()
    return DemoAnswer(question, call, value, time.perf_counter() - start)


def _counted(answer: DemoAnswer, before: int, after: int) -> DemoAnswer:
    change = answer.value
    answer.value = {
        "things known then": before,
        "things known now": after,
        "new since": len(change.added),
        "described anew": len(change.changed),
        "gone": len(change.removed),
    }
    return answer


def _why(store: GraphStore, node: Node) -> str:
    """The last recorded cause of this description."""
    causes = [
        link for link in store.links_from(node.id, ("caused_by",)) if link.valid_from <= node.valid_from
    ]
    if not causes:
        return ""
    cause = store.inspect(max(causes, key=lambda link: link.valid_from).target).node
    who = f", by {node.content['author']}" if "author" in node.content else ""
    return f"because: {label(cause)}{who}"


def _learned_since(store: GraphStore, plan: DemoPlan) -> str:
    """Return what we believe today about the subject at that instant, if we believed something else then."""
    try:
        then = store.knowledge_at(plan.known_at).node(plan.subject)
        now = store.as_of(valid=plan.known_at).node(plan.subject)
    except NotFoundError:
        return ""
    if then.number == now.number:
        return f"of {_name(plan.subject)} we believed then what we believe of that moment today: version {then.number}"
    return f"we believed then:         {label(then)}\nof the same moment today: {label(now)}"


def _name(id: str) -> str:
    kind, colon, rest = id.partition(":")
    return f"commit {rest[:10]}" if kind == "commit" and colon else rest if colon else id


def _open_next(store: GraphStore, plan: DemoPlan) -> str:
    paths = {node.content.get("path") for node in store.nodes(kind="file")}
    if FIRST_STOP in paths:
        return f"{FIRST_STOP}, the values every answer is made of; README.md has the way on from there"
    return f"{_name(plan.subject)}, changed more often than any other"


# ---- printing ----------------------------------------------------------------------------------


def look_at(store: str) -> str:
    """Return a line on how to look at a store."""
    return f"Look at it: graphstore page {store}"


def as_dict(tour: Tour) -> dict[str, Any]:
    """The tour for `--json`."""
    answers = [{one.name: getattr(answer, one.name) for one in fields(answer)} for answer in tour.answers]
    return {one.name: getattr(tour, one.name) for one in fields(tour)} | {"answers": answers}


def show(tour: Tour) -> None:
    """The tour on a terminal."""
    out = printing.console()
    out.print()
    out.print(tour.title, style="bold")
    out.print(f"  imported in {_span(tour.seconds)}: {tour.imported}")
    out.print(
        f"  into {tour.store}" if tour.kept else "  into a temporary store (--folder keeps it)", style="dim"
    )
    for number, answer in enumerate(tour.answers, start=1):
        out.print()
        out.print(f"{number}  {answer.question}", style="bold", end="")
        out.print(f"  ({_span(answer.seconds)})", style="dim")
        for line in answer.call.splitlines():
            out.print(f"   {line}", style="cyan", soft_wrap=True)
        printing.show(answer.value, out, most=SHOWN, indent=3)
        if answer.note:
            out.print("\n".join(f"   {line}" for line in answer.note.splitlines()))
    out.print()
    out.print("Open next: ", style="bold", end="")
    out.print(tour.open_next)
    if tour.kept:
        out.print("Ask it yourself: ", style="bold", end="")
        out.print(f"graphstore history {tour.store} {tour.subject}", soft_wrap=True)
        out.print(look_at(tour.store), soft_wrap=True)
    out.print()


def _span(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
