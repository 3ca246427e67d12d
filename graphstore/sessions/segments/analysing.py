"""Reading a segment of a session into what is known of it. An analyser is a callable; the one built in needs no model.

What the built-in one says it says by rules that anyone can check against the segment; where a rule has no ground, it
says so among its decisions and asks for review.
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
    """Describes a segment. `version` changes when its results do: what an older version described is then analysed again."""

    version: str

    def __call__(self, work: Work) -> SessionNode | Json: ...


@dataclass(frozen=True)
class Work:
    """A segment to be analysed: its entries, and where it is from."""

    transcript: Transcript
    segment: Segment
    computer: str
    project: str
    titles: Mapping[str, str] = field(default_factory=dict)
    """What other files of the agent call the work at an entry."""

    @property
    def header(self) -> Header:
        """The header of the session."""
        return self.transcript.header

    def entries(self) -> Iterator[tuple[Entry, Json]]:
        """The segment's entries with their bodies, as they lie in the file."""
        return self.transcript.bodies(self.segment)

    def steps(self) -> Iterator[Step]:
        """The steps of the entries, in order. Of a sub-agent at work beside the session only its actions and costs, not its words."""
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
        """When the segment began; where none of its entries says, when the session did. Raises InvalidError where nothing says."""
        found = self.segment.start_timestamp or self.header.timestamp
        if found is None:
            raise InvalidError(
                f"no entry of the segment at {self.segment.start_entry_id} and no header says when it was. Give one a timestamp."
            )
        return found

    def minutes(self) -> float:
        """How long it took by the clock on the wall, to two decimals."""
        ended = self.segment.end_timestamp or self.started()
        return max(0.0, round((ended - self.started()).total_seconds() / 60, 2))

    def request(self) -> str | None:
        """The first text of the user, without the wrappers of commands and reminders; None where there is none."""
        messages = (step for step in self.steps() if isinstance(step, SpokenMessage))
        return next((each.text for each in messages if each.who == "user" and rules.asks(each.text)), None)

    def text(self, limit: int | None = None) -> str:
        """Messages and summaries, a paragraph each with its author; for an analyser that reads text. At most `limit` characters: its beginning and its end."""
        whole = "\n\n".join(_paragraphs(self))
        if limit is None or len(whole) <= limit:
            return whole
        gap = "\n\n[…]\n\n"
        half = max(0, (limit - len(gap)) // 2)
        return whole[:half] + gap + whole[len(whole) - half :] if half else whole[:limit]

    def kept(self) -> bool | None:
        """Whether the session went on from most of this work, and did not go back behind it; None where nothing comes after it."""
        return self.transcript.is_kept(self.segment)

    def tokens_summed(self) -> list[Json]:
        """The compactions that began or ended the segment: tokens before and after, where the session says them."""
        names = {"tokens_before": "tokensBefore", "tokens_after": "tokensAfter"}
        cuts = [each for each in self.segment.opened_by if each.type == "compaction"]
        found = [
            {new: cut.metadata[old] for old, new in names.items() if old in cut.metadata} for cut in cuts
        ]
        return [each for each in found if each]

    def called(self) -> str | None:
        """What the agent itself called this work; None where it did not."""
        return self.transcript.title(self.segment, self.titles)

    def source(self) -> Json:
        """The `source` of the node."""
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
    """The analyser without a model."""

    version = "builtin-3"

    def __call__(self, work: Work) -> SessionNode:
        """What the segment says of itself. The same segment gives the same node, always."""
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
