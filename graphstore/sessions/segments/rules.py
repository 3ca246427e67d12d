"""Rules of the built-in analyser, as pure decisions over the steps of one segment.

`Findings` receives the steps one by one, keeps little of them, and returns each part of the node at the end.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from graphstore.sessions.segments import lexicon as known
from graphstore.sessions.segments import sayings
from graphstore.sessions.segments.nodes import LEVELS, UNPRICED
from graphstore.sessions.transcripts.steps import (
    Spending,
    SpokenMessage,
    Step,
    Stopped,
    SummaryStep,
    TokensTaken,
    ToolAnswer,
    ToolCall,
    UserCommand,
    summed,
)
from graphstore.values.models import Json
from graphstore.values.sameness import words

BYTES_A_TOKEN = 4
SUMMARY_MOST, SENTENCES_MOST = 300, 3
MESSAGE_MOST, LINE_MOST = 200, 500
TAGS_MOST = 12
SAID_MOST, ANSWERS_MOST = 4_000, 60_000  # the most characters of one text, and of all answers, that are kept
_ANSWERS_READ = 200  # the latest answers, in which decisions are searched
TOPIC_TIMES = 3
"""The number of uses that makes a word name a topic. Tags and the words of the first request always count."""
CLEAR_WORDS = 4
"""The least number of words in a request with a clear goal."""

_SLIPS = 20  # the latest errors that a working call can mark as slips
_ASKED_WITHIN = 2_000  # characters from the start of a request
_TEXT_KEPT = 20_000  # characters of all requests; more text changes no rule
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n\s*\n|\n(?=\x1e)")
_FENCE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*[-=*_]{3,}[ \t]*$", re.DOTALL | re.MULTILINE)  # and rules
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•]|\d{1,4}[.)]|#{1,6})[ \t]+", re.MULTILINE)
_COMMAND = re.compile(r"\A/[\w:.-]+\Z")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DRIVE = re.compile(r"\A[A-Za-z]:[\\/]")
_TAG = re.compile(r"</?tool_use_error>")
_EXIT_LINE = re.compile(r"Command exited with code \d+|Exit code \d+")
_FOUND_NOTHING = re.compile(r"\s*(?:\(no output\))?\s*(?:Command exited with code 1|Exit code 1)?\s*")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_LAST_COMMAND = re.compile(r".*(?:\|\|?|&&|;|\n)\s*", re.DOTALL)
_DECISIONS = re.compile(
    r"\s*(?:#+\s*|\*\*|(?=[^*]*:\s*\Z))(?:(?:key|main|design|architecture|architectural|technical|final) ){0,2}decisions(?: made| taken| so far)?(?:\s*\([^()]*\))?:?(?:\*\*)?:?\s*\Z",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*:?\s*\Z)")
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+(.*)$")
_WHY = re.compile(r"\s*(?::\*\*|\*\*:|:)\s+|\s+[—–]\s+|\s+-\s+|\s*\bbecause\b\s*")
_INSTEAD = re.compile(r"\b(?:instead of|rather than|over)\s+([^.;,()]+)", re.IGNORECASE)
_LABEL_WORDS = 3
_NAMED_CHOICE = re.compile(
    r"(?P<what>[A-Z0-9][^().]{0,60}?)\s*(?:\((?P<why>[^()]*)\))?"
)  # "Storage: R2 (signed URLs)"
_ANSWER = ("", "")  # the key of a model's own answers in `Findings._open`
_NAME = re.compile(r"[^\W_]")
_HASH = re.compile(r"(?=.*\d)[0-9a-f]{6,}")


class OutcomeVerdict(NamedTuple):
    """Holds the outcome, and the doubts about it if it was a guess."""

    outcome: str
    doubts: list[Json]


@dataclass(slots=True)
class _Error:
    type: str
    message: str
    tool: str
    about: str
    model: str
    misuse: bool
    resolved: bool = False
    passed: bool = False  # a slip: the work continued past it


@dataclass(slots=True)
class _Touch:
    """Counts how often one file was read and written."""

    read: int = 0
    written: int = 0


class Findings:
    """Accumulates the steps of one segment."""

    def __init__(self, project: str) -> None:
        self.project = _posix(project)
        self.requests: list[str] = []  # the user's messages
        self.answers: list[str] = []
        self.commits: dict[str, None] = {}  # the first lines of commit messages
        self.commit_messages: list[str] = []
        self.reported_since_commit = False
        self.summaries: list[SummaryStep] = []
        self.commands: list[str] = []
        self.looked = 0
        self.tools: dict[str, None] = {}
        self.files: dict[str, _Touch] = {}
        self.errors: list[_Error] = []
        self.stopped: Stopped | None = None
        self.last: Step | None = None
        self.since_request: list[ToolAnswer] = []
        self.was_broken = False  # some error in `BROKEN` came before anything was written
        self._open: dict[tuple[str, str], list[_Error]] = {}  # unresolved errors, by tool and main argument
        self._pending: dict[str, ToolCall] = {}
        self._spending = Spending()
        self._kept = 0

    # ------------------------------------------------------------------ taking steps

    def add_step(self, step: Step) -> None:
        """Add one step."""
        if isinstance(step, TokensTaken):
            if step.model or step.provider:
                self._spending.add(step)
            return
        self.stopped = None  # the reason why the last answer stopped is valid only until the next step
        if isinstance(step, SpokenMessage):
            self._take_text(step)
        elif isinstance(step, ToolCall):
            self._pending[step.id] = step
            self.tools.setdefault(step.tool)
        elif isinstance(step, ToolAnswer):
            self._take_answer(step)
        elif isinstance(step, UserCommand):
            self.commands.append(step.command)
            self._judge("bash", step.command, step.output, "", step.failed)
        elif isinstance(step, SummaryStep):
            self.summaries.append(step)
        elif isinstance(step, Stopped):
            self._take_stop(step)
        self.last = step

    def _take_text(self, message: SpokenMessage) -> None:
        if message.who == "assistant":
            self.answers.append(message.text)
            self.reported_since_commit = bool(self.commits)
            return
        if not asks(message.text):
            return
        room = _TEXT_KEPT - self._kept
        self.requests.append(message.text[: max(room, SUMMARY_MOST)])
        self._kept += len(self.requests[-1])
        self.since_request = []

    def _take_answer(self, answer: ToolAnswer) -> None:
        call = self._pending.pop(answer.call, None)
        tool = call.tool if call else answer.tool or ""
        if tool:
            self.tools.setdefault(tool)
        self.since_request.append(answer)
        about = main_argument(call.arguments) if call else ""
        failed = answer.failed and not found_nothing(tool, about, answer.text)
        if call is not None and not failed:
            self._touch(call)
        if not answer.refused:
            self._judge(tool, about, answer.text, call.model if call else "", failed)

    def _take_stop(self, stop: Stopped) -> None:
        self.stopped = stop
        if stop.why == "error":
            message = _line(stop.message) or "the model's answer failed"
            self._add(_Error("model_error", message, "", "", "", misuse=False))
        elif stop.why != "aborted":
            for error in self._open.pop(_ANSWER, ()):
                error.resolved = True

    def _touch(self, call: ToolCall) -> None:
        name = _plain_name(call.tool)
        if name in known.RUNNING:
            self.commands.append(main_argument(call.arguments))
            messages = _commits(call.arguments)
            made = [sayings.subject(message) for message in messages]
            self.commits.update(dict.fromkeys(made))
            self.commit_messages += messages
            self.reported_since_commit = self.reported_since_commit and not made
        elif name in known.LOOKING or name.startswith("mcp"):
            self.looked += 1
        if name not in known.READING and name not in known.WRITING:
            return
        path = self._relative(_first_text(call.arguments, known.FILE_ARGUMENTS), call.folder)
        if path:
            touch = self.files.setdefault(path, _Touch())
            if name in known.READING:
                touch.read += 1
            else:
                if not any(each.written for each in self.files.values()):
                    self.was_broken = any(error.type in known.BROKEN for error in self.errors)
                touch.written += 1

    def _judge(self, tool: str, about: str, text: str, model: str, failed: bool) -> None:
        """Record an error. A success of the same tool with the same main argument resolves its open errors."""
        if not failed:
            for error in self._open.pop((tool, about), ()) if about else ():
                error.resolved = True
            self._pass_slips(tool, about)
            return
        type, message = _error(text)
        if about and _EXIT_LINE.fullmatch(message):  # only the command tells these errors apart
            message = _cut(f"{message}: {about}", MESSAGE_MOST)
        misuse = type in known.MISUSE or _plain_name(tool) not in known.RUNNING
        self._add(_Error(type, message, tool, about, model, misuse))

    def _pass_slips(self, tool: str, about: str) -> None:
        """Mark recent slips as passed when a later call of the tool works: mistyped calls, searches, the same program with other arguments."""
        program = about.partition(" ")[0]
        for error in self.errors[-_SLIPS:]:
            if error.tool == tool and (
                error.type in known.SLIPS
                or _plain_name(tool) in known.LOOKING
                or error.about.partition(" ")[0] == program != about
            ):
                error.passed = True

    def _add(self, error: _Error) -> None:
        self.errors.append(error)
        self._open.setdefault((error.tool, error.about), []).append(error)

    def _relative(self, path: str, folder: str | None) -> str:
        """Return the path relative to the project; a path outside the project is unchanged."""
        path = _posix(path.removeprefix("@"))
        if not path:
            return ""
        if not path.startswith(("/", "~")) and not _DRIVE.match(path):
            path = posixpath.join(_posix(folder or self.project), path)
        path = posixpath.normpath(path)
        root = posixpath.normpath(self.project) if self.project else ""
        if root and path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
        return path

    # ------------------------------------------------------------------ events of the segment

    @property
    def silent(self) -> bool:
        """Return True if the segment holds neither a message nor any work."""
        return not (self.requests or self.answers or self.tools or self.summaries or self.commands)

    def summary(self) -> str:
        """Return one to three sentences of the first request; without one, of a summary, of the last answer, or a list of the tools used."""
        found = self._words()
        if found:
            return found
        done = f" with {', '.join(self.tools)}" if self.tools else ""
        return f"No words, only work{done}." if done else "Nothing was said."

    def _words(self) -> str:
        telling = [each for each in self.requests if not sayings.is_trivial(each)]
        texts = (*telling, *self.requests, *(each.text for each in self.summaries), *self.answers[-1:])
        return next((found for text in texts if (found := sentences(text))), "")

    def title(self, called: str | None) -> str:
        """Return a one-line title from the agent's own title, the last reporting answer, the commits, a request, or the files written, in this order."""
        if called:
            return " ".join(called.split())
        for answer in reversed(self.answers):
            if found := sayings.reported(answer):
                return found
        if self.commits:
            return _cut("; ".join(self.commits), sayings.TITLE_MOST)
        telling = (each for each in self.requests if not sayings.is_trivial(each))
        if found := next((found for text in telling if (found := sentences(text))), ""):
            return found
        written = self.files_written()
        return _cut(f"Wrote {', '.join(written)}", sayings.TITLE_MOST) if written else self.summary()

    def idle(self) -> str | None:
        """Return why the segment is not a piece of work, else None: `start-up` without a request, only `commands`, or `unanswered` consent."""
        if self.tools or self.commands or self.summaries:
            return None
        if not self.requests:
            return None if any(map(sayings.reported, self.answers)) else "commands"
        if all(known.WARM_UP.fullmatch(each) for each in self.requests):
            return "start-up"
        return None if self.answers or not all(map(sayings.is_trivial, self.requests)) else "unanswered"

    def requested(self) -> list[str]:
        """Return the user's requests, shortened."""
        return [_cut(text, SAID_MOST) for text in self.requests]

    def answered(self) -> list[str]:
        """Return the agent's answers, shortened; if there is too much text, the latest ones."""
        kept: list[str] = []
        room = ANSWERS_MOST
        for text in reversed(self.answers):
            kept.append(_cut(text, SAID_MOST))
            room -= len(kept[-1])
            if room < 0:
                break
        return kept[::-1]

    @property
    def is_cut(self) -> bool:
        """Return True if the segment ends with an interruption, or with a call that the user refused."""
        refused = isinstance(self.last, ToolAnswer) and self.last.refused
        return refused or (self.stopped is not None and self.stopped.why == "aborted")

    def outcome(self, kept: bool | None = None) -> OutcomeVerdict:
        """Return the outcome by the first rule that applies. `kept`: the session continued from this work; None: it ends with this work.

        Interrupted, or a call refused at the end → abandoned, unless the session continued from there. The last answer failed → failed.
        The user's last words drop, approve or reject the work → abandoned, success, partial. A request without any answer → abandoned.
        A commit and a report after it → success. The last tool result is an error → partial if files were written, else failed.
        The assistant finished → success, or partial if unresolved errors remain that were not slips. Anything else → partial, with a doubt for review.
        """
        stopped = self.stopped.why if self.stopped is not None else None
        cut = self.is_cut
        if cut and not kept:
            return OutcomeVerdict("abandoned", [])
        if stopped == "error":
            return OutcomeVerdict("failed", [])
        verdict = self._in_their_words()
        if verdict:
            return OutcomeVerdict(verdict, [])
        if self.requests and not self.answers and not self.tools:
            return OutcomeVerdict("abandoned", [])
        if self.commits and self.reported_since_commit:
            return OutcomeVerdict("success", [])
        open_errors = [
            error for error in self.errors if not (error.resolved or error.passed or _only_looked(error))
        ]
        if cut:
            return OutcomeVerdict("success" if self.answers and not open_errors else "partial", [])
        written = any(touch.written for touch in self.files.values())
        if isinstance(self.last, ToolAnswer) and self.last.failed:
            return OutcomeVerdict("partial" if written else "failed", [])
        if stopped == "done" or (isinstance(self.last, SpokenMessage) and self.last.who == "assistant"):
            return OutcomeVerdict("partial" if open_errors else "success", [])
        if self.silent:
            return OutcomeVerdict("partial", [])
        why = "ends in the middle of the work" if self.tools else "does not say how it ended"
        return OutcomeVerdict("partial", [_doubt("Outcome set to partial", f"the segment {why}")])

    def _in_their_words(self) -> str | None:
        """Return the outcome that the user's last words state; None if they state none, or if there was no earlier request."""
        if len(self.requests) < 2:
            return None
        text = self.requests[-1][:SUMMARY_MOST]
        if known.DROPPED.search(text):
            return "abandoned"
        worse, better = known.DISPLEASED.search(text), known.PLEASED.search(text)
        if worse and not better:
            return "partial" if not self.since_request else None
        if better and not worse and not any(answer.failed for answer in self.since_request[-1:]):
            return "success"
        return None

    def files_touched(self) -> list[str]:
        """Return the files that tools read or wrote, in order of first use; then files that summaries name."""
        found = dict.fromkeys(self.files)
        for summary in self.summaries:
            for file in summary.files:
                path = self._relative(file, None)
                if path:
                    found.setdefault(path)
        return list(found)

    def files_written(self) -> list[str]:
        """Return the files that tools wrote, in order of first use."""
        return [path for path, touch in self.files.items() if touch.written]

    def tools_used(self) -> list[str]:
        """Return the tools that the agent called, in order of first use."""
        return [tool for tool in self.tools if tool]

    def errors_seen(self) -> list[Json]:
        """Return the errors, each type and message once. An error counts as resolved if its last occurrence was."""
        seen: dict[tuple[str, str], bool] = {}
        for error in self.errors:
            seen[error.type, error.message] = error.resolved
        return [
            {"type": type, "message": message, "resolved": done} for (type, message), done in seen.items()
        ]

    def tool_use_errors(self) -> list[Json]:
        """Return the calls that a tool refused, each kind once. A command that fails is normal work, not misuse."""
        seen: dict[tuple[str, str, str], Json] = {}
        for error in self.errors:
            if error.misuse and error.tool:
                seen[error.tool, error.type, error.about] = {
                    "tool": error.tool,
                    "errorType": error.type,
                    "context": _cut(error.about, MESSAGE_MOST),
                    "model": error.model,
                    "wasRetried": error.resolved,
                }
        return list(seen.values())

    def models_used(self) -> list[Json]:
        """Return the tokens and cost of each model, in order of first use."""
        return [
            {
                "provider": provider,
                "model": model,
                **{to_camel(name): count for name, count in summed(messages).items()},
                "cost": math.fsum(took.cost or 0.0 for took in messages),
            }
            for provider, model, messages in self._spending
        ]

    def key_decisions(self) -> list[Json]:
        """Return the bullets below "Key Decisions" and the choices of one option over another, from summaries, answers and commit messages."""
        texts = [each.text for each in self.summaries] + self.answers[-_ANSWERS_READ:] + self.commit_messages
        bullets = {each["what"]: each for text in texts for each in decisions_in(text)}
        found = list(bullets.values())
        known_ones = set(bullets)
        for text in (*(each.text for each in self.summaries), *self.answers[-_ANSWERS_READ:]):
            for each in sayings.choices(text):
                if each.what not in known_ones:
                    known_ones.add(each.what)
                    found.append(_choice(each.what, each.why, [each.instead]))
        return found

    def lessons(self) -> dict[str, list[Json]]:
        """Return the lessons by level: errors with their fixes and user preferences from summaries, and corrections by the user (inferred)."""
        found: dict[str, dict[str, Json]] = {level: {} for level in LEVELS}
        language = self._language()

        def learn(level: str, summary: str, details: str, confidence: str, **more: bool) -> None:
            lesson: Json = {"level": level, "summary": summary, "details": details, "confidence": confidence}
            found[level].setdefault(summary, {**lesson, "tags": [language] if language else [], **more})

        for summary in self.summaries:
            for level, said in sayings.lessons_in(summary.text):
                learn(level, said.what, said.why, "medium")
        for request in self.requests[1:]:
            if correction := sayings.correction(request):
                learn("user", correction, "Inferred: the user corrected the work.", "low", inferred=True)
        return {level: list(lessons.values()) for level, lessons in found.items()}

    def pending(self) -> list[str]:
        """Return the open tasks that the last summary lists."""
        return sayings.pending_in(self.summaries[-1].text) if self.summaries else []

    # ------------------------------------------------------------------ the kind of work

    def classification(self) -> Json:
        """Return type, language, frameworks and whether the goal was clear. `isNewProject` is always False: one segment cannot decide it."""
        found: Json = {
            "type": self._type(),
            "project": self.project,
            "isNewProject": False,
            "hadClearGoal": has_clear_goal(self.requests[0]) if self.requests else False,
        }
        language = self._language()
        if language:
            found["language"] = language
        frameworks = self._frameworks()
        if frameworks:
            found["frameworks"] = frameworks
        return found

    def _type(self) -> str:
        requested = asked_for(self.requests[0] if self.requests else "")
        written = [path for path, touch in self.files.items() if touch.written]
        if "handoff" in requested or (written and all(known.HANDOFF_FILE.search(path) for path in written)):
            return "handoff"
        if written:
            return self._type_of_writing(written, requested)
        for type in ("planning", "brainstorm", "qa"):
            if type in requested:
                return type
        if self.commands:
            for type, pattern in (("qa", known.TEST_COMMANDS), ("sysadmin", known.SYSTEM_COMMANDS)):
                if 2 * sum(pattern.search(each) is not None for each in self.commands) >= len(self.commands):
                    return type
            if "debugging" in requested:
                return "debugging"
        if self.files or self.commands or self.looked:
            return "research"
        return requested[0] if requested else "other"

    def _type_of_writing(self, written: list[str], requested: list[str]) -> str:
        """Return the type of work from the kind of most files written. For source code the request decides, then whether it failed before."""
        kinds: Counter[str] = Counter()
        for path in written:
            kinds[_kind_of_file(path)] += self.files[path].written
        most, times = kinds.most_common(1)[0]
        if most != "source" and 3 * times >= 2 * kinds.total():
            return most
        for type in ("refactoring", "debugging", "coding"):
            if type in requested:
                return type
        return "debugging" if self.was_broken else "coding"

    def _language(self) -> str | None:
        """Return the language of most files written; if none was written, of most files read. A manifest counts if no file has a language."""
        for done in ("written", "read"):
            counts = {path: times for path, touch in self.files.items() if (times := getattr(touch, done))}
            for table in (known.LANGUAGES, known.MANIFESTS):
                found: Counter[str] = Counter()
                for path, times in counts.items():
                    name = posixpath.basename(path).lower()
                    language = table.get(name if table is known.MANIFESTS else _extension(name))
                    if language:
                        found[language] += times
                if found:
                    return min(found, key=lambda each: (-found[each], each))
        return None

    def _frameworks(self) -> list[str]:
        found: set[str | None] = set()
        for path in self.files:
            name = posixpath.basename(path).lower()
            stem = name.rpartition(".")[0] or name
            found.update(known.FRAMEWORKS_BY_NAME.get(each) for each in (stem, name))
            found.add(known.FRAMEWORKS_BY_EXTENSION.get(_extension(name)))
        return sorted(filter(None, found))

    # ------------------------------------------------------------------ search terms

    def semantic(self) -> Json:
        """Return tags (language, frameworks, MCP tools, frequent words), and topics and concepts found by word lists."""
        counts = Counter(significant("\n".join(self.requests)))
        texts = (*self.requests, *(each.text for each in self.summaries))
        first = dict.fromkeys(significant(self.requests[0] if self.requests else self._words()))
        common = sorted((word for word in counts if counts[word] > 1), key=lambda word: (-counts[word], word))
        language = self._language()
        tags = dict.fromkeys([language] if language else [])
        tags.update(dict.fromkeys(self._frameworks()))
        tags.update(dict.fromkeys(tool.lower() for tool in self.tools if tool.lower().startswith("mcp__")))
        for word in (*common, *first):
            if len(tags) >= TAGS_MOST:
                break
            tags.setdefault(word)
        often = Counter(words(without_paths("\n".join(texts))))
        spoken = {word for word in often if often[word] >= TOPIC_TIMES}
        spoken.update(tags, words(without_paths(texts[0][:SUMMARY_MOST]) if texts else ""))
        found: Json = {"tags": list(tags), "topics": _by_words(known.TOPICS, spoken)}
        concepts = _by_words(known.CONCEPTS, spoken)
        for summary in self.summaries:
            concepts += [each for each in sayings.concepts_in(summary.text) if each not in concepts]
        if concepts:
            found["concepts"] = concepts
        return found

    def doubts(self) -> list[Json]:
        """Return the decisions that were made without evidence, except those about the outcome."""
        doubts: list[Json] = []
        if self.silent:
            return [{"decision": "Nothing to analyse", "reasoning": "nobody said or did anything"}]
        if not self.requests:
            doubts.append(_doubt("Summary taken from elsewhere", "the segment holds no request of the user"))
        if self._type() == "other":
            doubts.append(
                _doubt("Type set to other", "neither the request nor the tools say what kind of work it was")
            )
        took = [each for _, _, messages in self._spending for each in messages]
        if any(each.cost is None and each.tokens_input + each.tokens_output for each in took):
            doubts.append({"decision": UNPRICED, "reasoning": "the session says tokens and no cost"})
        return doubts


# ---- words and numbers ---------------------------------------------------------------------------------


def sentences(text: str) -> str:
    """Return the first one to three sentences on one line, without code, cut at a word if too long."""
    found: list[str] = []
    for raw in _SENTENCE.split(_LIST_MARK.sub("\x1e", _FENCE.sub("\n\n", text))):
        sentence = " ".join(raw.replace("\x1e", " ").split())
        if not _NAME.search(sentence):
            continue
        if found and len(" ".join([*found, sentence])) > SUMMARY_MOST:
            break
        found.append(sentence)
        if len(found) == SENTENCES_MOST:
            break
    return _cut(" ".join(found), SUMMARY_MOST).rstrip(" ,;:")


def asks(text: str) -> bool:
    """Return True if a text of the user asks for something. A command of the agent itself, such as /clear, does not."""
    return _COMMAND.match(text) is None


def has_clear_goal(request: str) -> bool:
    """Return True if a request states a goal: enough words, with a verb or a named thing."""
    text = request[:_ASKED_WITHIN]
    return len(text.split()) >= CLEAR_WORDS and known.CLEAR.search(text) is not None


def asked_for(request: str) -> list[str]:
    """Return the types of work that a request names, in table order."""
    text = request[:_ASKED_WITHIN]
    return [type for type, pattern in known.REQUESTS if pattern.search(text)]


def significant(text: str) -> list[str]:
    """Return the significant words of a text: 3 to 30 characters, without stop words, numbers, hashes and paths."""
    return [
        word
        for word in words(without_paths(_FENCE.sub(" ", text)))
        if 3 <= len(word) <= 30
        and word not in known.STOP_WORDS
        and word[0].isalpha()
        and not _HASH.fullmatch(word)
    ]


def without_paths(text: str) -> str:
    """Return the text without parts that are paths."""
    return " ".join(part for part in text.split() if "/" not in part and "\\" not in part)


def found_nothing(tool: str, command: str, output: str) -> bool:
    """Return True if a failed command was a search that found nothing: it exits with 1 and prints nothing."""
    if _plain_name(tool) not in known.RUNNING or _FOUND_NOTHING.fullmatch(output) is None:
        return False
    return known.SEARCHES.match(_LAST_COMMAND.sub("", _QUOTED.sub("''", command), count=1)) is not None


def _only_looked(error: _Error) -> bool:
    """Return True if a read or search failed only because the target is missing or cannot be reached."""
    name = _plain_name(error.tool)
    if error.type == "not_found":
        return name in known.READING | known.LOOKING or known.LOOKS.match(error.about) is not None
    return name in known.LOOKING and error.type in ("network", "timeout", "permission")


def _commits(arguments: Mapping[str, Any]) -> list[str]:
    return sayings.commit_messages(_first_text(arguments, ("command", "cmd")))


def main_argument(arguments: Mapping[str, Any]) -> str:
    """Return the main argument of a call on one line: a path, a command or a pattern."""
    return " ".join(_first_text(arguments, known.MAIN_ARGUMENTS).split())


def _first_text(arguments: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of these arguments that is a string; an empty string if there is none."""
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), "")


def decisions_in(summary: str) -> list[Json]:
    """Return the bullets below each heading "Key Decisions", split into decision, reason and alternatives."""
    found: list[Json] = []
    inside = False
    for line in summary.splitlines():
        bullet = _BULLET.match(line)
        if bullet is None and (_HEADING.match(line) or _DECISIONS.match(line)):
            inside = _DECISIONS.match(line) is not None
        elif inside and bullet is not None:
            found += _decision(bullet[1])
        elif inside and found and line.startswith((" ", "\t")) and line.strip():
            found[-1]["why"] = f"{found[-1]['why']} {line.strip().lstrip('-*• ')}".strip()
    return found


def _decision(bullet: str) -> list[Json]:
    split = _WHY.search(bullet)
    what = (bullet if split is None else bullet[: split.start()]).strip(" *`")
    why = "" if split is None else bullet[split.end() :].strip(" *")
    if not what or what.lower().strip("()[] .") == "none":
        return []
    if why and len(what.split()) <= _LABEL_WORDS and (named := _NAMED_CHOICE.fullmatch(why)):
        what, why = f"{what}: {named['what']}", named["why"] or ""
    instead = [each.strip(" *`") for each in _INSTEAD.findall(what) or _INSTEAD.findall(bullet)]
    return [_choice(what, why, instead)]


def _choice(what: str, why: str, instead: list[str]) -> Json:
    return {"what": what, "why": why, "alternativesConsidered": instead}


def _error(text: str) -> tuple[str, str]:
    """Return the kind of an error and the line that states it."""
    plain = known.NOISE.sub("", _TAG.sub("", _ANSI.sub("", text)))
    for type, pattern in known.ERRORS:
        for found in pattern.finditer(plain):
            line = plain[plain.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
            if len(line) > LINE_MOST:  # minified code contains every word
                continue
            if type != "lint" and known.LINTED.match(line):
                continue
            traced = type == "exception" and line.startswith("Traceback")
            return type, _line(_last_line(plain) if traced else line)
    exit_line = _EXIT_LINE.search(plain)
    if exit_line is None:
        return "tool_error", _line(plain) or "no message"
    return "exit_code", _line(_last_line(plain)) or exit_line[0]


def _last_line(text: str) -> str:
    kept = (line for line in text.splitlines() if not _EXIT_LINE.search(line))
    lines = [line for line in kept if line.strip() not in ("", "(no output)")]
    return lines[-1] if lines else ""


def _line(text: str) -> str:
    """Return the first non-empty line, shortened."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return _cut(" ".join(line.split()), MESSAGE_MOST)


def _cut(text: str, most: int) -> str:
    """Return the text in at most `most` characters. A longer text is cut at a word and ends with an ellipsis."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    space = kept.rfind(" ")
    return (kept[:space] if space > most // 2 else kept).rstrip(" ,;:") + "…"


def _kind_of_file(path: str) -> str:
    name = posixpath.basename(path).lower()
    extension = _extension(name)
    if known.TEST_FILE.search(path.lower()) and extension in known.LANGUAGES:
        return "qa"
    if extension in known.DOCUMENTS and name not in known.MANIFESTS:
        return "planning" if known.PLAN_FILE.search(path) else "documentation"
    if extension in known.SETTINGS or name in known.SETTING_NAMES or name in known.MANIFESTS:
        return "configuration"
    return "data" if extension in known.DATA else "source"


def _extension(name: str) -> str:
    return name.rpartition(".")[2] if "." in name[1:] else ""


def _plain_name(tool: str) -> str:
    return tool.lower().replace("_", "").replace("-", "")


def _posix(path: str) -> str:
    return path.replace("\\", "/") if _DRIVE.match(path) or path.startswith("\\\\") else path


def _by_words(table: Mapping[str, frozenset[str]], spoken: set[str]) -> list[str]:
    return [name for name, its in table.items() if its & spoken]


def _doubt(decision: str, reasoning: str) -> Json:
    return {"decision": decision, "reasoning": reasoning, "needsReview": True}
