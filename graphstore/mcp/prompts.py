"""The prompts: a briefing at the beginning of a session; and one to look the memory through, with what is found there now and what to do about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphstore.mcp.answers import thing, things
from graphstore.mcp.desk import Desk
from graphstore.store.briefing import BriefQuestion
from graphstore.values.models import Event, Node
from graphstore.values.period import clocked, moment, when
from graphstore.values.text import line

_MOST = 20
_LINE = 300


def brief(desk: Desk, since: str | None = None, **asked: Any) -> str:
    """The text of the prompt that begins a session. Raises InvalidError for a `since` that is none."""
    found = desk.brief(BriefQuestion(**asked), since=since)
    return f"{found.text}\nGo on from here. get(id=…) shows a line in full, why(id=…) the reasons."


def audit(desk: Desk, since: str = "7d") -> str:
    """The text of the prompt, with what is found at now. Raises InvalidError for a `since` that is none."""
    view = desk.view()
    begin = moment(view.instant_of(since, "since"))
    before = desk.view(valid=view.at.valid.isoformat(), tx=min(begin, view.at.tx).isoformat())
    found = before.compare(view)
    shaky = [str(each) for each in view.shaky(_MOST + 1)]
    contested = [
        f"{thing(view, each.source)} against {thing(view, each.target)}"
        for each in view.contradictions(limit=_MOST + 1)
    ]
    added: list[Node | Event] = [*found.added, *found.events_added]
    gone: list[Node | Event] = [*found.removed, *found.events_removed]
    changed = [f"added {each}" for each in things(view, added)] + [
        f"gone {each}" for each in things(view, gone)
    ]
    changed += [f"changed {thing(view, each.after)}" for each in found.changed]
    return "\n".join(
        [
            f"Look this memory through ({view.at}) and put right what is wrong. Ask before you retract anything.",
            *_section(
                "1. Shaky: it stands, and rests on something that has fallen. For each call why(id=…), then decide whether it still holds: "
                "remember(statement=…, revises=id) to state it otherwise, retract(id=…) when it fell too. "
                'search(query="", standing="shaky") lists all.',
                shaky,
            ),
            *_section(
                "2. Contradictions: both stand and cannot both be right, or so it seems. For each call history(id=…) of both, then "
                'supersede(old=…, by=…) or retract(id=…), or leave both and say why. search(query="", standing="contested") lists all.',
                contested,
            ),
            *_section(
                f"3. Changed since {when(begin)} (recorded since then). Look for what replaced something without a reason, and for what was recorded twice. "
                f'diff(before_tx="{clocked(begin)}") lists all.',
                changed,
            ),
            "4. Report what you found and did, each with its id, its reason, and since when it holds.",
        ]
    )


def _section(title: str, found: Iterable[str]) -> Iterator[str]:
    lines = list(found)
    yield ""
    yield title
    yield from (f"- {line(each, _LINE)}" for each in lines[:_MOST])
    if len(lines) > _MOST:
        yield "- … and more"
    if not lines:
        yield "- none"
