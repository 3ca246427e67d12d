"""Interprets texts of a session: whether a request asks for work, what an answer reports, and which commits a command makes.

These are pure functions of text, shared by the rules of the analyser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TITLE_MOST = 200
_READ = 6_000  # characters of a text that are examined
_SENTENCES = 2
_LEAST_WORDS = 3
_LEAST_SAID = 8  # words; a shorter text includes the list below it
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKS = re.compile(r"\*\*|__|`|^#{1,6}\s+|\[([^\[\]]{1,200})\]\([^()]{0,400}\)")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]{1,200}\*\*:?\s*\Z)")
_LABEL = re.compile(r"\s*(?:\*\*)?\w[\w-]*(?: \w[\w-]*)?(?:\*\*)?:(?:\*\*)?\s*")
_RULER = re.compile(r"\s*(?:[-=*_|+:\s]{3,}|\|.*\|)\s*")
_OPENERS = re.compile(
    r"(?:(?:ok(?:ay)?|yes|yep|sure|done|all done|perfect|great|good|excellent|awesome|nice|got it|fixed|understood|absolutely|exactly|thanks|"
    r"wonderful|fantastic|(?:all )?committed(?: and pushed)?|pushed|confirmed|you'?re (?:absolutely )?(?:right|welcome)|sounds good|makes sense|"
    r"good (?:catch|call|point|question|idea))\s*[,.!:–—-]+\s*)+",
    re.IGNORECASE,
)
_NO_REPORT = re.compile(
    r"(?:(?:so |then )?(?:now|first|next|also),? )?(?:(?:but |and )?let me\b|let's\b|i'?ll\b|i will\b|i'?m going to\b|i need to\b|i should\b)|"
    r"(?:would you|do you|should i|shall i|want me|let me know|ready (?:for|to|when)|you can (?:now|test|try|run)|feel free|try it|waiting (?:on|for)|"
    r"is there anything|anything else|no response requested|api error|sources?:|next steps?|i'?m ready|i understand|i can see|looking at|"
    r"(?:here(?:'s| is| are))\b.{0,40}:$|(?:this|these|that) (?:is|are) (?:exactly|very|really|all )?(?:an? )?\w+[ \w]{0,30}[.!]$|"
    r"(?:excellent|great|good|perfect)(?: \w+){1,3}[.!:]$|honest answer|got the context)",
    re.IGNORECASE,
)
_SHORT = 80  # characters; a longer text is more than consent
_CONSENT = (
    r"(?:ok(?:ay)?|k|y|yes|yeah|yep|yup|no|nope|sure|please|continue|go|go on|go ahead|keep going|carry on|proceed|next|resume|retry|try again|again|"
    r"do it|do that|do so|let'?s go|let'?s (?:continue|keep going|get started|do it|start)|get started|start|thanks?|thank you|thx|cool|nice|great|good|"
    r"perfect|awesome|amazing|excellent|done|right|correct|exactly|fine|sounds good|looks good|lgtm|makes sense|that works|all right|alright|hi|hello|"
    r"hey|warm ?up|test|ping|what'?s (?:the )?next(?: step)?|and|so|then|now|it|that|for now|job|work)"
)
_BETWEEN = r"[\s,.!?:;)('\"-]"
_TRIVIAL = re.compile(rf"{_BETWEEN}*{_CONSENT}(?:{_BETWEEN}+{_CONSENT})*{_BETWEEN}*", re.IGNORECASE)
_NOTICE = re.compile(
    r"(?:Base directory for this skill:|This session is being continued from|\[?(?:Image|Pasted text)\b[^\]]{0,40}\]?\s*\Z|Caveat: The messages below|"
    r"<[a-z][a-z-]{2,40}>|# Plugin Creation Workflow\b|\[Request interrupted|Continue from where you left off|The previous (?:turn|response) was)",
    re.IGNORECASE,
)
_LOGGED = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|at \S+ ?\(|File \"|Traceback|npm (?:ERR|error|warn)|error(?: TS\d+|\[E\d+\])?:|warning:|"
    r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b|\$ |> |❯ |\+\+\+|---|@@ |\w*(?:Error|Exception):|panicked|\s{4}at |[|│├└╰╭])",
)
_LOG_LINES, _LOG_SHARE = 4, 0.5
_COMMITS = re.compile(r"(?=\bgit\s{1,9}(?:-[cC]\s{1,9}\S{1,200}\s{1,9}){0,4}commit\b)")
_COMMIT = re.compile(r"\bgit\s+(?:-[cC]\s+\S+\s+){0,4}commit\b(?P<rest>.*)", re.DOTALL)
_MESSAGE = re.compile(
    r"(?:\s-[a-zA-Z]*m\s*|\s--message[= ]\s*)(?:\"\$\(cat <<-?\s*\\?['\"]?(?P<mark>\w+)['\"]?\s*\n(?P<here>.*?)\n\s*(?P=mark)|"
    r"(?P<quote>['\"])(?P<said>(?:\\.|(?!(?P=quote)).)*)(?P=quote)|(?P<bare>[^\s'\"$]\S*))",
    re.DOTALL,
)
_HEREDOC = re.compile(r"<<-?\s*\\?['\"]?(\w+)['\"]?[^\n]*\n(?P<here>.*?)\n\s*\1\s*", re.DOTALL)


def is_trivial(request: str) -> bool:
    """Return True if a request names no work: "ok", "continue", a notice of the program, a pasted log."""
    text = request[:_READ].strip()
    consents = len(text) <= _SHORT and _TRIVIAL.fullmatch(text) is not None
    return not text or consents or _NOTICE.match(text) is not None or is_log(text)


def is_log(text: str) -> bool:
    """Return True if most lines of a text look like program output."""
    lines = [line for line in text.splitlines() if line.strip()]
    printed = sum(_LOGGED.match(line) is not None for line in lines)
    return len(lines) >= _LOG_LINES and printed > _LOG_SHARE * len(lines)


def reported(answer: str) -> str:
    """Return the first sentences that report what was done or found, on one line. Return an empty string if the answer only asks, agrees or announces."""
    kept: list[str] = []
    listing, heading = False, ""
    for line in _FENCE.sub("\n", answer[:_READ]).splitlines():
        if not line.strip() or _RULER.fullmatch(line):
            continue
        if _HEADING.match(line) or _LABEL.fullmatch(line):
            heading = _MARKS.sub(r"\1", line.strip()).strip(" :")
            continue
        is_item = _BULLET.match(line) is not None
        says_little = len(" ".join(kept).split()) < _LEAST_SAID
        if is_item and not listing and kept and not (says_little and heading):
            break
        for sentence in _SENTENCE.split(_MARKS.sub(r"\1", _BULLET.sub("", line)).strip()):
            said = _OPENERS.sub("", sentence, count=1) if _OPENERS.match(sentence) else sentence
            if (
                (len(said.split()) < _LEAST_WORDS and not listing)
                or _NO_REPORT.match(said)
                or said.endswith("?")
            ):
                continue
            if is_item and says_little and not listing and heading and not _NO_REPORT.match(heading):
                kept.append(f"{heading}:")
                listing = True
            kept.append(said)
            listing = said.endswith(":") or (listing and is_item)
            if len(" ".join(kept)) >= TITLE_MOST or (len(kept) >= _SENTENCES and not listing):
                return _joined(kept)
    return _joined(kept)


def _joined(kept: list[str]) -> str:
    """Return sentences as one line, with semicolons between list items."""
    text = ""
    for said in kept:
        divider = "; " if text and text[-1] not in ".!?:…" else " " if text else ""
        text += divider + said
    text = " ".join(text.split()).rstrip(" :;,")
    if text.partition(" ")[0].replace("'", "").isalpha():  # the first word is plain text
        text = text[:1].upper() + text[1:]
    if len(text) <= TITLE_MOST:
        return text
    return text[: text.rfind(" ", 0, TITLE_MOST)].rstrip(" ,;:") + "…"


def subject(message: str) -> str:
    """Return the first non-empty line of a commit message."""
    return next(line.strip() for line in message.splitlines() if line.strip())


def commit_messages(command: str) -> list[str]:
    """Return the messages of the commits that a shell command makes."""
    found: list[str] = []
    if "commit" not in command:
        return found
    for part in _COMMITS.split(command[:_READ]):
        commit = _COMMIT.match(part)
        if commit is None:
            continue
        message = _MESSAGE.search(commit["rest"])
        if message is not None:
            said = next(filter(None, (message["here"], message["said"], message["bare"])), "")
        else:
            here = _HEREDOC.search(commit["rest"]) if re.search(r"(?:-F|--file)", commit["rest"]) else None
            said = "" if here is None else here["here"]
        if said.strip():
            found.append(said.replace('\\"', '"'))
    return found


# ---- decisions and lessons -------------------------------------------------------------------------


class Choice(NamedTuple):
    """Holds a decision or lesson, its reason, and the rejected alternative (`instead`)."""

    what: str
    why: str
    instead: str = ""


_LINES = 2_000  # lines of a text that are examined
_LONG = 400  # characters; a longer line is not a choice
_LESSONS_MOST, _CONCEPTS_MOST = 30, 12
_CHOICE = re.compile(
    r"(?P<bold>\*\*|__)?(?P<what>(?:(?:we(?:'ll)?|i) )?(?:use[ds]?|using|choose|chose|chosen|prefer(?:red)?|pick(?:ed)?|go with|went with|keep|kept|"
    r"adopt(?:ed)?|switch(?:ed)? to|decided on|selected)\s+(?P<taken>.{1,120}?)\s+(?:over|instead of|rather than)\s+(?P<instead>.{1,120}?))"
    r"(?:(?P=bold))?(?:\s*(?:\*\*|__)?:(?:\*\*|__)?\s+|\s+[—–]\s+|\s+-\s+|,?\s+because\s+|,?\s+since\s+|\s*\(|\.?\s*\Z)(?P<why>.*)",
    re.IGNORECASE,
)
_SECTION = re.compile(
    r"\s*(?:#{1,6}\s+|\d{1,2}[.)]\s+)?(?:\*\*)?(?P<name>[A-Z][A-Za-z&/,' -]{2,50}?)(?:\*\*)?\s*:?\s*(?:\*\*)?\s*\Z"
)
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*•]|\d{1,3}[.)])\s+(?P<text>.*)")
_HALVES = re.compile(r"(?:\*\*:|:\*\*|:)\s*|\s+[—–]\s+")
_FIXED = re.compile(
    r"(?:\*\*)?(?:fix(?:ed)?|solution|resolution|solved|root cause|cause)(?:\*\*)?\s*:?(?:\*\*)?\s*",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\W*(?:none\b.{0,40}|n/?a|nothing\b.{0,40}|no (?:errors?|pending|further|known|explicit)\b.{0,40})\W*",
    re.IGNORECASE,
)
_SECTIONS = {
    "errors and fixes": "task",
    "problem solving": "project",
    "constraints & preferences": "user",
    "constraints and preferences": "user",
}
_PENDING = ("pending tasks", "next steps", "in progress")
_CONCEPTS = ("key technical concepts",)
_NAMED = {*_SECTIONS, *_PENDING, *_CONCEPTS}
_CORRECTED = re.compile(
    r"(?:(?:no|nope|wait|wrong|actually|stop|not (?:that|like that|quite))\b[\s,.:;!–—-]+(?:.{0,60}?\b)?"
    r"(?:use|don'?t|do not|should(?:n'?t)?|instead|never|always|must|prefer|keep|remove|put|make|call|it'?s|it is|that'?s|i (?:want|meant|said|prefer))\b|"
    r"(?:please )?(?:don'?t|do not|never|always)\s+\w+|(?:please )?use\s+.{1,80}?\b(?:instead|rather than|not)\b|i (?:said|meant|told you)\b)",
    re.IGNORECASE,
)


def choices(text: str) -> Iterator[Choice]:
    """Yield the choices of one option over another that lines of a text state: `Use X over Y: why`, plain or bold."""
    if not any(word in text for word in ("over", "instead of", "rather than")):
        return
    for line in text.splitlines()[:_LINES]:
        said = _BULLET.sub("", line).strip()
        if len(said) > _LONG:
            continue
        found = _CHOICE.match(said)
        if found is not None:
            what, why, instead = (_plain(found[name]) for name in ("what", "why", "instead"))
            yield Choice(what, why.rstrip(")") if "(" not in why else why, instead)


def lessons_in(summary: str) -> list[tuple[str, Choice]]:
    """Return the lessons of a summary, each with its level: errors with their fixes, solved problems, user preferences."""
    found: list[tuple[str, Choice]] = []
    for name, items in _sections(summary):
        level = _SECTIONS.get(name)
        if level is not None:
            found += [(level, each) for each in items]
    return found[:_LESSONS_MOST]


def pending_in(summary: str) -> list[str]:
    """Return the open tasks that a summary lists."""
    return [
        each.what + (f": {each.why}" if each.why else "")
        for name, items in _sections(summary)
        if name in _PENDING
        for each in items
    ]


def concepts_in(summary: str) -> list[str]:
    """Return the technical concepts that a summary lists."""
    found = [
        each.what.casefold() for name, items in _sections(summary) if name in _CONCEPTS for each in items
    ]
    return [each for each in dict.fromkeys(found) if len(each) <= _SHORT][:_CONCEPTS_MOST]


def correction(request: str) -> str:
    """Return the sentence in which a request corrects earlier work ("no, use tabs"); an empty string if there is none."""
    text = request[:_READ].strip()
    if _CORRECTED.match(text) is None or is_trivial(text):
        return ""
    first = _SENTENCE.split(text.splitlines()[0])
    said = first[0] if len(first[0].split()) >= _LEAST_WORDS or len(first) == 1 else " ".join(first[:2])
    return said if len(said) <= _LONG else ""


def _sections(summary: str) -> Iterator[tuple[str, list[Choice]]]:
    """Yield the sections of a summary by name in lower case, each with its outer items."""
    name, items = "", list[tuple[int, list[str]]]()
    for line in summary.splitlines()[:_LINES]:
        heading, item = _SECTION.match(line), _ITEM.match(line)
        numbered = line[:1].isdigit() and line.rstrip().endswith(":")  # "6. All user messages:" is a heading
        if heading is not None and (item is None or numbered or heading["name"].strip().casefold() in _NAMED):
            if items:
                yield name, _items(items)
            name, items = heading["name"].strip().casefold(), []
        elif item is not None:
            items.append((len(item["indent"].expandtabs(4)), [item["text"].strip()]))
        elif line.strip():
            items.append((len(line) - len(line.lstrip()), [line.strip()])) if not items else items[-1][
                1
            ].append(line.strip())
    if items:
        yield name, _items(items)


def _items(items: list[tuple[int, list[str]]]) -> list[Choice]:
    """Return the outer items of a section. Lines below an item give its reason or its solution."""
    outer = min(indent for indent, _ in items)
    found: list[Choice] = []
    for indent, lines in items:
        text = _plain(" ".join(lines))
        if indent <= outer:
            what, *why = _HALVES.split(" ".join(lines), maxsplit=1)
            if _NOTHING.fullmatch(text) is None:
                found.append(
                    Choice(_plain(what)[:_LONG], _FIXED.sub("", _plain(" ".join(why)), count=1)[: _LONG * 2])
                )
        elif found:
            below = _FIXED.sub("", text, count=1) if not found[-1].why else text
            found[-1] = found[-1]._replace(why=f"{found[-1].why} {below}".strip()[: _LONG * 2])
    return [each for each in found if each.what]


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub(r"\1", text or "").split()).strip(" *_:")
