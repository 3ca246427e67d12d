"""Decides when a segment is described again, and which parts of older descriptions remain: corrections by a person, and connections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from graphstore.sessions.segments.nodes import SCHEMA_VERSION, carry_corrections
from graphstore.sessions.transcripts.steps import as_list, as_object
from graphstore.values.models import Json, Version

_ITS_OWN = {"source": ("segment", "digest"), "metadata": ("analyzedAt", "analyzerVersion", "schemaVersion")}
"""The fields that describe the analysis itself. Corrections never apply to them."""
Outdated = Literal["prompt_update", "schema_migration"]
INITIAL, GROWN, EARLIER = "initial", "session_grown", "earlier_session"
CORRECTED, CONNECTED = "user_feedback", "connection_found"


def outdated(content: Json, version: str) -> Outdated | None:
    """Return the reason to describe a segment again with the analyser of this version; None if it is current."""
    metadata = _part(content, "metadata")
    schema, by = metadata.get("schemaVersion"), metadata.get("analyzerVersion")
    if isinstance(schema, int) and schema < SCHEMA_VERSION:
        return "schema_migration"
    return "prompt_update" if isinstance(by, str) and by != version else None


def known_as(content: Json) -> tuple[str | None, int]:
    """Return the digest of the bytes that a segment was read from, and its number of content entries."""
    source = _part(content, "source")
    count = _part(source, "segment").get("entryCount")
    return source.get("digest"), count if isinstance(count, int) else 0


def carried(versions: Iterable[Version], fresh: Json) -> Json:
    """Return a fresh description together with people's corrections and with connections that were found before. `versions`: all earlier versions."""
    before: Json | None = None
    analysed = fresh
    for version in sorted(versions, key=lambda version: version.number):
        if before is not None and version.trigger == CORRECTED:
            fresh = carry_corrections(before, version.content, fresh)
        elif before is not None and version.trigger == CONNECTED:
            fresh = _connected(before, version.content, fresh)
        before = version.content
    for part, names in _ITS_OWN.items():
        if part in fresh:
            own = {name: analysed[part][name] for name in names if name in analysed[part]}
            fresh = {**fresh, part: {**_part(fresh, part), **own}}
    return fresh


def still_says(before: Json, after: Json) -> bool:
    """Return True if a description still contains every decision and lesson of an earlier one. Other nodes may rest on these."""
    then, now = _stated(before), _stated(after)
    return all(each in now for each in then)


def _stated(content: Json) -> list[Any]:
    lessons = _part(content, "lessons").values()
    decisions = [_part(content, "content").get("keyDecisions"), _part(content, "daemonMeta").get("decisions")]
    return [each for some in (*lessons, *decisions) for each in as_list(some)]


def _connected(before: Json, after: Json, fresh: Json) -> Json:
    """Return `fresh` with the decisions and related projects that `after` added to `before`."""
    carried = dict(fresh)
    for part, name in (("daemonMeta", "decisions"), ("semantic", "relatedProjects")):
        was = _part(before, part).get(name) or []
        here = _part(fresh, part)
        there = here.get(name) or []
        added = [each for each in _part(after, part).get(name) or [] if each not in was and each not in there]
        if added:
            carried[part] = {**here, name: [*there, *added]}
    return carried


def in_new_project(content: Json, new: bool) -> Json:
    """Return the content with `classification.isNewProject` set to `new`."""
    return {**content, "classification": {**_part(content, "classification"), "isNewProject": new}}


def _part(content: Json, name: str) -> Json:
    return as_object(content.get(name))
