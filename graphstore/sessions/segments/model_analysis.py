"""Describes a segment with a language model, through any service that offers OpenAI's chat completions.

Facts come from the built-in analyser: files, tools, errors, tokens, commits. The model supplies judgements: title, summary, outcome, decisions, lessons
and tags. Its answer is checked as a node; after a fault the model is asked again with the error message.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from graphstore.chat_client import ChatClient
from graphstore.errors import EngineError, InvalidError
from graphstore.sessions.segments.analysing import builtin
from graphstore.sessions.segments.nodes import LEVELS, SessionNode
from graphstore.values.inputs import at_least_one
from graphstore.values.models import Json

if TYPE_CHECKING:
    from graphstore.sessions.segments.analysing import Work

__all__ = ["PROMPT", "ModelAnalyser"]

PROMPT = """You describe one segment of a coding agent's session. Answer with one JSON object and nothing else:
{"title": what was done, in at most 12 words,
 "summary": what was asked for and what came of it, in one to three sentences,
 "outcome": "success", "partial", "failed" or "abandoned",
 "keyDecisions": [{"what": text, "why": text, "alternativesConsidered": [text]}],
 "lessons": [{"level": "project", "task", "user", "model", "tool", "skill" or "subagent", "summary": text, "details": text,
   "confidence": "low", "medium" or "high", "tags": [text], "actionable": text or absent}],
 "tags": [at most 8 words by which to find it],
 "topics": [at most 4 fields it belongs to]}
State only what the segment says. Leave a list empty rather than guess. A lesson is what somebody would want to know before similar work."""
_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_BYTES_A_TOKEN = 4


class ModelAnalyser:
    """Analyses segments with a model. `version` is derived from the prompt and the model's name, so a change of either describes segments again.

    `tries`: attempts per segment until the answer is a valid node. `budget`: total tokens allowed; a segment that would exceed it is refused and can be
    imported later. `most`: characters sent of a segment, from its beginning and its end. Raises InvalidError for a number below 1.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        prompt: str = PROMPT,
        tries: int = 3,
        budget: int | None = None,
        most: int = 60_000,
    ) -> None:
        self._client, self._prompt = client, prompt
        self._tries, self._most = at_least_one("tries", tries), at_least_one("most", most)
        self._budget = None if budget is None else at_least_one("budget", budget)
        self.taken = 0
        """The number of tokens used so far."""
        made_of = f"{client.model}\n{prompt}".encode()
        self.version = f"model-1-{blake2b(made_of, digest_size=4).hexdigest()}"

    def __call__(self, work: Work) -> Json:
        """Return the segment as the model describes it. Raise EngineError if the service fails or returns no node, InvalidError if the budget is spent."""
        plain = SessionNode.from_content(builtin(work)).json_object()
        if plain["content"].get("idle"):
            return self._signed(plain, "nothing was done: no model was asked")
        text, wrong = work.text(self._most), ""
        before = self.taken
        for _ in range(self._tries):
            self._spend(text)
            said = self._client.complete(self._prompt, text + wrong)
            counted = (
                said.tokens_in or len(text) // _BYTES_A_TOKEN,
                said.tokens_out or len(said.text) // _BYTES_A_TOKEN,
            )
            self.taken += sum(counted)
            try:
                log = f"{self._client.model}: {self.taken - before:,} tokens"
                return SessionNode.from_content(
                    self._signed(_joined(plain, _object_in(said.text)), log)
                ).json_object()
            except InvalidError as error:
                wrong = (
                    f"\n\n[Your last answer could not be read: {error} Answer with the JSON object alone.]"
                )
        raise EngineError(f"{self._client!r} gave no description in {self._tries} tries.{wrong.rstrip(']')}")

    def _spend(self, text: str) -> None:
        if (
            self._budget is not None
            and self.taken + (len(self._prompt) + len(text)) // _BYTES_A_TOKEN > self._budget
        ):
            raise InvalidError(
                f"the budget of {self._budget:,} tokens is used up: {self.taken:,} were taken. Import again with another."
            )

    def _signed(self, node: Json, log: str) -> Json:
        """Return the node with the metadata of this analysis."""
        metadata = {**node["metadata"], "analyzerVersion": self.version}
        return {
            **node,
            "metadata": metadata,
            "daemonMeta": {**node["daemonMeta"], "rlmUsed": False, "analysisLog": log},
        }


def _object_in(said: str) -> Json:
    fenced = _FENCED.match(said)
    try:
        found = json.loads(fenced[1] if fenced else said)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"it is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidError("it is no JSON object.")
    return found


def _joined(plain: Json, said: Json) -> Json:
    """Return the facts of the built-in analyser combined with the model's answer."""
    content, semantic = dict(plain["content"]), dict(plain["semantic"])
    content |= {name: said[name] for name in ("title", "summary", "outcome", "keyDecisions") if name in said}
    semantic |= {name: said[name] for name in ("tags", "topics") if name in said}
    lessons: dict[str, list[Any]] = {level: [] for level in LEVELS}
    given = said.get("lessons", [])
    if not isinstance(given, list):
        raise InvalidError("lessons is no list.")
    for number, lesson in enumerate(given):
        level = lesson.get("level") if isinstance(lesson, dict) else None
        if level not in LEVELS:
            raise InvalidError(f"lessons[{number}].level: {InvalidError.choice('level', level, LEVELS)}")
        lessons[level].append(lesson)
    # the model settles what the built-in analyser guessed
    decisions = [each for each in plain["daemonMeta"]["decisions"] if not each.get("needsReview")]
    meta = {**plain["daemonMeta"], "decisions": decisions}
    return {**plain, "content": content, "semantic": semantic, "lessons": lessons, "daemonMeta": meta}
