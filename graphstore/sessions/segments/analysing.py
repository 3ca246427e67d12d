"""Runs an analyser on a segment of a session. An analyser is a callable; the built-in one needs no language model.

The built-in analyser follows rules that anyone can check against the segment. If no rule applies, it records that among its decisions and asks for
review.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import fsum
from typing import TYPE_CHECKING, Any, Protocol

from graphstore.errors import InvalidError
from graphstore.sessions.segments import rules
from graphstore.sessions.segments.nodes import SessionNode
from graphstore.sessions.transcripts.file_formats import stepper
from graphstore.sessions.transcripts.steps import SpokenMessage, Step, Stopped, SummaryStep
from graphstore.values.models import Json
from graphstore.values.period import instant, iso

if TYPE_CHECKING:
    from graphstore.sessions.transcripts.transcript import Entry, Header, Segment, Transcript

__all__ = ["Analyser", "Work", "builtin"]


class Analyser(Protocol):
    """Describes a segment. `version` changes whenever results change; segments that an older version described are then analysed again."""

    version: str

    def __call__(self, work: Work) -> SessionNode | Json: ...


@dataclass(frozen=True)
class Work:
    """Holds a segment to analyse: its entries and its origin."""

    transcript: Transcript
    segment: Segment
    computer: str
    project: str
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles that other files of the agent give to work, by entry id."""

    @property
    def header(self) -> Header:
        """Return the header of the session."""
        return self.transcript.header

    def entries(self) -> Iterator[tuple[Entry, Json]]:
        """Yield the segment's entries with their bodies, in file order."""
        return self.transcript.bodies(self.segment)

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the entries, in order. If a sub-agent works inside the session, yield its actions and costs but not its messages."""
        within = self.transcript.entries[self.segment.start : self.segment.stop]
        beside = any(entry.is_content and not entry.sidechain for entry in within)
        steps = stepper(self.header.format)
        for entry, body in self.entries():
            for step in steps(body):
                if not (
                    beside and entry.sidechain and isinstance(step, SpokenMessage | Stopped | SummaryStep)
                ):
                    yield step

    def started(self) -> datetime:
        """Return the start of the segment, or of the session if no entry has a time. Raise InvalidError if neither has one."""
        found = self.segment.start_timestamp or self.header.timestamp
        if found is None:
            raise InvalidError(
                f"no entry of the segment at {self.segment.start_entry_id} and no header says when it was. Give one a timestamp."
            )
        return found

    def minutes(self) -> float:
        """Return the elapsed wall-clock time in minutes, to two decimals."""
        ended = self.segment.end_timestamp or self.started()
        return max(0.0, round((ended - self.started()).total_seconds() / 60, 2))

    def request(self) -> str | None:
        """Return the first text of the user, without the wrappers of commands and reminders; None if there is none."""
        messages = (step for step in self.steps() if isinstance(step, SpokenMessage))
        return next((each.text for each in messages if each.who == "user" and rules.asks(each.text)), None)

    def text(self, limit: int | None = None) -> str:
        """Return messages and summaries, one paragraph each with its author. If the text exceeds `limit` characters, return its beginning and its end."""
        whole = "\n\n".join(_paragraphs(self))
        if limit is None or len(whole) <= limit:
            return whole
        gap = "\n\n[…]\n\n"
        half = max(0, (limit - len(gap)) // 2)
        return whole[:half] + gap + whole[len(whole) - half :] if half else whole[:limit]

    def kept(self) -> bool | None:
        """Return True if the session continued from most of this work and did not go back behind it; None if nothing comes after it."""
        return self.transcript.is_kept(self.segment)

    def tokens_summed(self) -> list[Json]:
        """Return the token counts before and after each compaction that opened the segment, where the session states them."""
        names = {"tokens_before": "tokensBefore", "tokens_after": "tokensAfter"}
        cuts = [each for each in self.segment.opened_by if each.type == "compaction"]
        found = [
            {new: cut.metadata[old] for old, new in names.items() if old in cut.metadata} for cut in cuts
        ]
        return [each for each in found if each]

    def called(self) -> str | None:
        """Return the title that the agent gave to this work; None if it gave none."""
        return self.transcript.title(self.segment, self.titles)

    def source(self) -> Json:
        """Return the `source` part of the node."""
        header, segment = self.header, self.segment
        source: Json = {
            "sessionFile": str(self.transcript.path),
            "segment": {
                "startEntryId": segment.start_entry_id,
                "endEntryId": segment.end_entry_id,
                "entryCount": segment.entry_count,
            },
            "computer": self.computer,
            "sessionId": header.session_id,
            "digest": self.transcript.digest(segment),
            "format": header.format,
        }
        if header.agent:
            source["agent"] = header.agent
        if header.agent and header.parent_session_id:
            source["parentSessionId"] = header.parent_session_id
        if header.parent_session:
            source["parentSession"] = header.parent_session
        return source


def _paragraphs(work: Work) -> Iterator[str]:
    for step in work.steps():
        if isinstance(step, SpokenMessage):
            yield f"{step.who}: {step.text}"
        elif isinstance(step, SummaryStep):
            yield f"{step.how} summary: {step.text}"


class _Builtin:
    """Analyses segments without a language model."""

    version = "builtin-3"

    def __call__(self, work: Work) -> SessionNode:
        """Return the description of a segment. The same segment always gives the same node."""
        found = rules.Findings(work.project)
        for step in work.steps():
            found.add_step(step)
        size = sum(each.length for each in work.transcript.entries[work.segment.start : work.segment.stop])
        at = iso(instant(work.segment.end_timestamp or work.started()))
        used = found.models_used()
        kept = work.kept()
        verdict = found.outcome(kept)
        doubts = [*verdict.doubts, *found.doubts()]
        idle = found.idle()
        node: dict[str, Any] = {
            "source": work.source(),
            "classification": found.classification(),
            "content": {
                "title": found.title(work.called()),
                "summary": found.summary(),
                "outcome": verdict.outcome,
                "requests": found.requested(),
                "answers": found.answered(),
                "commits": list(found.commits),
                "keyDecisions": found.key_decisions(),
                "filesTouched": found.files_touched(),
                "filesWritten": found.files_written(),
                "toolsUsed": found.tools_used(),
                "errorsSeen": found.errors_seen(),
            },
            "lessons": found.lessons(),
            "observations": {
                "modelsUsed": used,
                "promptingWins": [],
                "promptingFailures": [],
                "modelQuirks": [],
                "toolUseErrors": found.tool_use_errors(),
            },
            "metadata": {
                "tokensUsed": sum(model["tokensInput"] + model["tokensOutput"] for model in used),
                "cost": fsum(model["cost"] for model in used),
                "durationMinutes": work.minutes(),
                "timestamp": iso(instant(work.started())),
                "analyzedAt": at,
                "analyzerVersion": self.version,
            },
            "semantic": found.semantic(),
            "daemonMeta": {
                "decisions": [{"timestamp": at, **doubt} for doubt in doubts],
                "rlmUsed": False,
                "segmentTokenCount": size // rules.BYTES_A_TOKEN,
            },
        }
        if idle:
            node["content"]["idle"] = idle
        if found.is_cut:
            node["metadata"]["kept"] = bool(kept)
        if pending := found.pending():
            node["content"]["pendingTasks"] = pending
        if summed := work.tokens_summed():
            node["content"]["compactions"] = summed
        return SessionNode.from_content(node)


builtin: Analyser = _Builtin()
