"""A node of a session with every field there is, made up for tests; and a session file to be written by hand."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson

LEVELS = ("project", "task", "user", "model", "tool", "skill", "subagent")
NODE: dict[str, Any] = {
    "id": "0123456789abcdef",
    "version": 1,
    "previousVersions": [],
    "source": {
        "sessionFile": "/home/ada/.pi/agent/sessions/--home-ada-looms--/2026-01-24T10-00-00-000Z_s1.jsonl",
        "segment": {"startEntryId": "e1", "endEntryId": "e9", "entryCount": 9},
        "computer": "desk",
        "sessionId": "s1",
        "parentSession": "/home/ada/.pi/agent/sessions/--home-ada-looms--/2026-01-23T10-00-00-000Z_s0.jsonl",
    },
    "classification": {
        "type": "coding",
        "project": "/home/ada/looms",
        "isNewProject": False,
        "hadClearGoal": True,
        "language": "python",
        "frameworks": ["pytest"],
    },
    "content": {
        "summary": "Wove the pattern store.",
        "outcome": "success",
        "keyDecisions": [
            {
                "what": "Keep cards in files",
                "why": "anyone can read them",
                "alternativesConsidered": ["a database"],
            }
        ],
        "filesTouched": ["looms/cards.py"],
        "toolsUsed": ["read", "edit"],
        "errorsSeen": [{"type": "exception", "message": "KeyError: 'warp'", "resolved": True}],
    },
    "lessons": {
        level: [
            {
                "level": level,
                "summary": f"about the {level}",
                "details": "in full",
                "confidence": "high",
                "tags": ["cards"],
                "actionable": "do it again",
            }
        ]
        for level in LEVELS
    },
    "observations": {
        "modelsUsed": [
            {
                "provider": "zai",
                "model": "glm-4.7",
                "tokensInput": 15000,
                "tokensOutput": 3000,
                "cacheRead": 10,
                "cacheWrite": 0,
                "cost": 0.0,
            }
        ],
        "promptingWins": ["one thing at a time"],
        "promptingFailures": [],
        "modelQuirks": [
            {
                "model": "zai/glm-4.7",
                "observation": "apologises",
                "frequency": "often",
                "workaround": "none",
                "severity": "low",
            }
        ],
        "toolUseErrors": [
            {
                "tool": "edit",
                "errorType": "edit_mismatch",
                "context": "looms/cards.py",
                "model": "glm-4.7",
                "wasRetried": True,
            }
        ],
    },
    "metadata": {
        "tokensUsed": 18000,
        "cost": 0,
        "durationMinutes": 45,
        "timestamp": "2026-01-24T10:00:00.000Z",
        "analyzedAt": "2026-01-24T10:55:00.000Z",
        "analyzerVersion": "v1-abc123",
    },
    "semantic": {
        "tags": ["storage", "cards"],
        "topics": ["data persistence"],
        "relatedProjects": ["/home/ada/engine"],
        "concepts": ["versioning"],
    },
    "daemonMeta": {
        "decisions": [
            {
                "timestamp": "2026-01-24T10:50:00.000Z",
                "decision": "Made the tag 'cards'",
                "reasoning": "nothing fits",
                "needsReview": True,
            }
        ],
        "analysisLog": "/var/log/analysis.log",
        "rlmUsed": False,
        "segmentTokenCount": 12000,
    },
}


def node(**places: Any) -> dict[str, Any]:
    """The example, with other values at places such as `content__outcome`."""
    made = deepcopy(NODE)
    for place, value in places.items():
        *parts, last = place.split("__")
        part = made
        for name in parts:
            part = part[name]
        part[last] = value
    return made


class SessionFile:
    """A session of pi, entry for entry, a minute between two."""

    def __init__(self, path: Path, cwd: str = "/home/ada/looms") -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": "s1", "timestamp": self._at(0), "cwd": cwd}
        ]
        self.calls = 0

    def _at(self, minute: int) -> str:
        return f"2026-01-24T{10 + minute // 60:02}:{minute % 60:02}:00.000Z"

    def add(self, type: str, **said: Any) -> SessionFile:
        """An entry of that type, a child of the one before."""
        count = len(self.entries)
        parent = f"e{count - 1}" if count > 1 else None
        entry = {
            "type": type,
            "id": f"e{count}",
            "parentId": parent,
            "timestamp": self._at(count - 1),
            **said,
        }
        self.entries.append(entry)
        return self

    def user(self, text: str) -> SessionFile:
        """What the user says."""
        return self.add("message", message={"role": "user", "content": text})

    def assistant(self, text: str = "", stop: str = "stop", **more: Any) -> SessionFile:
        """What the assistant says, with what it cost: 100 tokens in, 10 out, a cent."""
        usage = {"input": 100, "output": 10, "cacheRead": 5, "cacheWrite": 1, "cost": {"total": 0.01}}
        content = [{"type": "text", "text": text}] if text else []
        said = {
            "role": "assistant",
            "provider": "zai",
            "model": "glm-4.7",
            "usage": usage,
            "stopReason": stop,
        }
        return self.add("message", message={**said, "content": [*content, *more.pop("calls", [])], **more})

    def call(self, tool: str, result: str = "done", failed: bool = False, **arguments: Any) -> SessionFile:
        """A call of a tool and what it gave back."""
        self.calls += 1
        id = f"call{self.calls}"
        call = {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
        self.assistant(stop="toolUse", calls=[call])
        said = {"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": failed}
        return self.add("message", message={**said, "content": [{"type": "text", "text": result}]})

    def write(self) -> Path:
        """The file, written."""
        self.path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in self.entries))
        return self.path
