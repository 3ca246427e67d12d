"""Models the description of one segment of an agent's session: events, lessons, behaviour of the model, and costs.

JSON uses camelCase, attributes use snake_case. Unknown fields are kept at every level, and absent fields are not written. So a node that is read and
written again gives the same JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from graphstore.errors import InvalidError
from graphstore.values.content_diff import same
from graphstore.values.inputs import brief
from graphstore.values.models import Json, Node, Value, Version
from graphstore.values.period import TimeLike, instant, iso

SEGMENT, SESSION = "segment", "session"
"""The kinds of node that a store has for sessions."""
SCHEMA_VERSION = 1
"""The value of `metadata.schemaVersion`. It rises when the stored shape changes."""
UNPRICED = "Cost taken as 0"
"""The decision that an analyser records when it knows tokens but no cost."""
IDENTITY = ("id", "version", "previousVersions")
"""The fields that the store keeps itself; they are not part of a node's content."""

NodeType = Literal[
    "coding", "debugging", "refactoring", "sysadmin", "research", "planning", "qa", "brainstorm", "handoff", "documentation",
    "configuration", "data", "other",
]  # fmt: skip
Outcome = Literal["success", "partial", "failed", "abandoned"]
LessonLevel = Literal["project", "task", "user", "model", "tool", "skill", "subagent"]
Level = Literal["low", "medium", "high"]
Frequency = Literal["once", "sometimes", "often", "always"]
LEVELS: tuple[LessonLevel, ...] = ("project", "task", "user", "model", "tool", "skill", "subagent")


def _an_instant(value: str) -> str:
    instant(value)
    return value


Count = Annotated[int, Field(ge=0)]
Amount = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""An int stays an int."""
Text = Annotated[str, Field(min_length=1)]
Time = Annotated[str, AfterValidator(_an_instant)]
"""ISO 8601 with an offset, exactly as it was written."""


class NodePart(Value):
    """A part of a node. Unknown fields are kept."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, alias_generator=to_camel, validate_by_name=True
    )

    def json_object(self) -> Json:
        """The part as a JSON object, with the fields that are set."""
        return self.model_dump(by_alias=True, exclude_unset=True)


P = TypeVar("P", bound=NodePart)


class SourceSegment(NodePart):
    """The entries it was made from: from which to which, and how many that have content."""

    start_entry_id: str
    end_entry_id: str
    entry_count: Count


class NodeSource(NodePart):
    """Where in which session it was. `digest`: of the segment's bytes."""

    session_file: str
    segment: SourceSegment
    computer: str
    session_id: str
    parent_session: str | None = None
    digest: str | None = None
    format: str | None = None


class NodeClassification(NodePart):
    """What kind of work it was."""

    type: NodeType
    project: str
    is_new_project: bool
    had_clear_goal: bool
    language: str | None = None
    frameworks: list[str] | None = None


class KeyDecision(NodePart):
    """What was decided, why, and instead of what."""

    what: str
    why: str
    alternatives_considered: list[str]


class ErrorSummary(NodePart):
    """An error that was met, and whether it was overcome within the segment."""

    type: str
    message: str
    resolved: bool


class NodeContent(NodePart):
    """What happened. `title`: what was done, in a line; `commits`: the first lines of their messages; `idle`: why it is no piece of work."""

    summary: str
    outcome: Outcome
    key_decisions: list[KeyDecision]
    files_touched: list[str]
    tools_used: list[str]
    errors_seen: list[ErrorSummary]
    title: str | None = None
    requests: list[str] | None = None
    answers: list[str] | None = None
    commits: list[str] | None = None
    idle: str | None = None


class Lesson(NodePart):
    """Something learned, at one level."""

    level: LessonLevel
    summary: str
    details: str
    confidence: Level
    tags: list[str]
    actionable: str | None = None


class LessonsByLevel(NodePart):
    """What was learned, a list for each level. Each lesson says the level of its list."""

    project: list[Lesson]
    task: list[Lesson]
    user: list[Lesson]
    model: list[Lesson]
    tool: list[Lesson]
    skill: list[Lesson]
    subagent: list[Lesson]

    @model_validator(mode="after")
    def _in_its_list(self) -> LessonsByLevel:
        for level in LEVELS:
            for number, lesson in enumerate(getattr(self, level)):
                if lesson.level != level:
                    raise ValueError(
                        f"{level}[{number}].level {lesson.level!r} stands in the list of {level!r}. Move it, or change its level."
                    )
        return self

    def all(self) -> list[Lesson]:
        """Every lesson, level by level."""
        return [lesson for level in LEVELS for lesson in getattr(self, level)]


class ModelUsage(NodePart):
    """What one model took, in tokens and US dollars."""

    provider: str
    model: str
    tokens_input: Count
    tokens_output: Count
    cache_read: Count | None = None
    cache_write: Count | None = None
    cost: Amount


class ModelQuirk(NodePart):
    """Something a model does that one would not expect."""

    model: str
    observation: str
    frequency: Frequency
    workaround: str | None = None
    severity: Level


class ToolError(NodePart):
    """A tool used wrongly."""

    tool: str
    error_type: str
    context: str
    model: str
    was_retried: bool


class ModelObservations(NodePart):
    """How the models behaved."""

    models_used: list[ModelUsage]
    prompting_wins: list[str]
    prompting_failures: list[str]
    model_quirks: list[ModelQuirk]
    tool_use_errors: list[ToolError]


class NodeMetadata(NodePart):
    """When it was, how long, what it cost (US dollars); when and by what it was analysed."""

    tokens_used: Count
    cost: Amount
    duration_minutes: Amount
    timestamp: Time
    analyzed_at: Time
    analyzer_version: str
    schema_version: Count | None = None


class SemanticData(NodePart):
    """By what it is found."""

    tags: list[str]
    topics: list[str]
    related_projects: list[str] | None = None
    concepts: list[str] | None = None


class DaemonDecision(NodePart):
    """A decision of the analyser. `needs_review`: it was made without much ground."""

    timestamp: Time
    decision: str
    reasoning: str
    needs_review: bool | None = None


class DaemonMeta(NodePart):
    """How the analysis went."""

    decisions: list[DaemonDecision]
    analysis_log: str | None = None
    rlm_used: bool
    segment_token_count: Count | None = None


class SessionNode(NodePart):
    """A discrete piece of work, read from a segment of a session.

    An analysis has no id and no version yet: the store gives them.
    """

    id: Text | None = None
    version: Annotated[int, Field(ge=1)] = 1
    previous_versions: list[str] = []
    source: NodeSource
    classification: NodeClassification
    content: NodeContent
    lessons: LessonsByLevel
    observations: ModelObservations
    metadata: NodeMetadata
    semantic: SemanticData
    daemon_meta: DaemonMeta

    @classmethod
    def from_content(cls, given: SessionNode | Mapping[str, Any]) -> SessionNode:
        """The checked node. Raises InvalidError that says for each fault where, what was got and what is allowed."""
        if isinstance(given, SessionNode):
            return given
        return checked(cls, given)

    of = from_content
    """The name that `from_content` had in release 0.1."""

    @property
    def text(self) -> str:
        """What a search looks in: the summary, the decisions and the lessons."""
        lines = [
            self.content.title,
            *(self.content.commits or ()),
            self.content.summary,
            *(decision.what for decision in self.content.key_decisions),
        ]
        lines += [each.summary for each in self.lessons.all()]
        return "\n".join(dict.fromkeys(line for line in lines if line))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags the node is kept with."""
        return tuple(dict.fromkeys(tag for tag in self.semantic.tags if tag.strip()))


class NodeEdge(NodePart):
    """A link between two nodes as a file says it."""

    id: Text
    source_node_id: Text
    target_node_id: Text
    type: Text
    metadata: Json
    created_at: Time
    created_by: Text


# ---- between the model and the store ------------------------------------------------------------


def stored(given: SessionNode | Mapping[str, Any], *, analyzed_at: TimeLike | None = None) -> Json:
    """Return the content to store for a node, without the fields in `IDENTITY`. Raise InvalidError if `given` is not a node.

    `analyzed_at` replaces the analyser's own instant, and that of each decision made at that instant.
    """
    node = SessionNode.from_content(given)
    content = {name: value for name, value in node.json_object().items() if name not in IDENTITY}
    content["metadata"].setdefault("schemaVersion", SCHEMA_VERSION)
    if analyzed_at is not None:
        at = iso(instant(analyzed_at))
        for decision in content["daemonMeta"]["decisions"]:
            if decision["timestamp"] == content["metadata"]["analyzedAt"]:
                decision["timestamp"] = at
        content["metadata"]["analyzedAt"] = at
    return content


def loaded(known: Node | Version) -> SessionNode:
    """Return the stored node with its id, its version and its earlier versions. Raise InvalidError if the content is not a session node."""
    before = [f"{known.id}-v{number}" for number in range(1, known.number)]
    identity = {"id": known.id, "version": known.number, "previousVersions": before}
    return checked(SessionNode, {**identity, **known.content})


def carry_corrections(analysed: Json, corrected: Json, fresh: Json) -> Json:
    """Return a fresh analysis with a person's corrections of an earlier one.

    `analysed` is the content that the person saw, `corrected` the content after the correction. A field that differs is taken from `corrected`; a
    removed field stays removed; lists are taken whole. Unchanged fields, including `source` and `metadata`, come from `fresh`.
    """
    carried = dict(fresh)
    for name in {**analysed, **corrected}:
        before, after = analysed.get(name), corrected.get(name)
        if name in analysed and name in corrected and same(before, after):
            continue
        if name not in corrected:
            carried.pop(name, None)
        elif isinstance(after, dict) and isinstance(before, dict) and isinstance(fresh.get(name), dict):
            carried[name] = carry_corrections(before, after, fresh[name])
        else:
            carried[name] = after
    return carried


# ---- faults of a node -----------------------------------------------------------------------------

_SHOWN = 3


def checked(model: type[P], given: Any) -> P:
    """Return `given` validated as this model. Raise InvalidError with the first faults: path, value received, values allowed."""
    if not isinstance(given, Mapping):
        raise InvalidError(f"{brief(given)} is no node. Give a JSON object.")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = list({_path(each["loc"]): _fault(each) for each in error.errors()}.values())
    more = f" And {len(faults) - _SHOWN} more." if len(faults) > _SHOWN else ""
    raise InvalidError(" ".join(faults[:_SHOWN]) + more) from None


def _fault(error: Any) -> str:
    path = _path(error["loc"])
    if error["type"] == "missing":
        return f"{path} is missing."
    if error["type"] == "literal_error":
        valid = [each.strip("'") for each in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        return f"{path}: {InvalidError.choice('value', error['input'], valid)}"
    if error["type"] == "value_error":
        dot = "." if path else ""
        message = str(error["ctx"]["error"])
        return f"{path}{dot}{message}" if "stands in the list" in message else f"{path}: {message}"
    return f"{path} {brief(error['input'])}: {_wanted(error['msg'])}."


def _wanted(message: str) -> str:
    return message[0].lower() + message[1:]


def _path(place: tuple[Any, ...]) -> str:
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif "[" not in part and part not in ("int", "float", "constrained-int", "constrained-float"):
            path += f".{part}" if path else part
    return path
