"""What the command line says of each parameter: its words by name, the same for every command that has it."""

from typing import NamedTuple


class Word(NamedTuple):
    """A parameter in words. `flag`: its option, by default its name. `type`: what it takes, where its call does not say so."""

    help: str
    metavar: str = ""
    flag: str = ""
    type: str = ""
    is_required: bool = False


EMBEDDER = Word(
    "wordllama, fastembed, openai (with a model), or module:function.", "EMBEDDER", type="embedder"
)
WORDS: dict[str, Word] = {
    "agent": Word("Which agent."),
    "analyze": Word("What describes a segment. [the built-in one]", "MODULE:NAME", "--analyzer"),
    "at": Word("Until when. [now]", "TIME"),
    "at_least": Word("Groups of so many."),
    "before": Word("Only what began before then.", "TIME"),
    "budget_tokens": Word("At most so long. [all of it]", "TOKENS", "--budget"),
    "by": Word("What replaces it.", "NEW"),
    "classification": Word("How it was classified."),
    "computer": Word("Where the sessions ran. [this computer's name]"),
    "confidence": Word("explicit or inferred."),
    "content": Word("A JSON object; @FILE reads a file, - standard input.", "CONTENT"),
    "corrects": Word("What it corrects (may be repeated).", "ID", type="ids"),
    "created_by": Word("Who makes it."),
    "days": Word("Keep events for so many days."),
    "bytes": Word("Keep the journal below this size."),
    "depth": Word("How many steps to follow."),
    "derived_from": Word("What it rests on (may be repeated).", "ID", type="ids"),
    "direction": Word("Along the links, against them, or either way."),
    "fingerprint": Word("Same one, same event."),
    "folder": Word("Where AGENTS.md, SOUL.md, USER.md … are.", "FOLDER"),
    "hops": Word("How many links to follow."),
    "id": Word("An id; of one the store made a unique beginning (6 characters or more).", "ID", type="id"),
    "identity": Word("Who the agent is (may be repeated).", type="many"),
    "ids": Word("What to start from.", "ID...", type="ids"),
    "if_number": Word("Only if that version holds now.", "NUMBER"),
    "into": Word("The summary: an id, or a JSON object for a new one.", "ID|CONTENT"),
    "k": Word("At most so many.", flag="-k"),
    "keep": Word("The one that is right, or: both.", "ID", type="id"),
    "keep_audit": Word("Leave no tombstones either.", flag="--no-audit"),
    "key": Word("The slot it fills, such as deploy_day."),
    "kind": Word("Only nodes of this kind."),
    "kinds": Word("Only links of this kind (may be repeated).", flag="--kind"),
    "larger_than": Word("The oldest, until it is smaller.", "BYTES"),
    "layer": Word("soul, conversation, tool, group, er1, observation, or your own.", "LAYER"),
    "level": Word("Such as project, task, user, tool."),
    "limit": Word("At most so many."),
    "link_id": Word("The link's id, lnk_….", "LINK_ID", type="id"),
    "mapping": Word("Which column is what.", "FILE", type="file"),
    "media_hash": Word("The medium's SHA-256."),
    "media_path": Word("The medium; hashed if it is there.", "FILE"),
    "members": Word("What is summed up.", "ID...", type="ids"),
    "metadata": Word("A JSON object."),
    "minor": Word("It says the same: what rests on it does not fall."),
    "most": Word("So many links of a kind from one segment."),
    "name": Word("The branch's name.", "NAME"),
    "new": Word("Another's.", "NEW"),
    "now": Word("As if it were then. [now]", "TIME"),
    "occurred_at": Word("When. [now]", "TIME"),
    "old": Word("A version's number.", "OLD"),
    "origin": Word("What sort of source."),
    "parent_span_id": Word("The span around it."),
    "ended_at": Word("When the span ended.", "TIME"),
    "patch": Word("A JSON object: the fields, and what they are to be.", "FIELDS"),
    "pattern": Word("Part of the description."),
    "project": Word("Only of this project: its path, or the end of it."),
    "query": Word("What is asked.", "TEXT"),
    "reason": Word("Why, in your words."),
    "recent": Word("So many messages at most."),
    "related_to": Word("What it touches (may be repeated).", "ID", type="ids"),
    "replay": Word(
        "Record each at its own time, in a store that is new: then --as-of answers what was known."
    ),
    "scope": Word("Where it applies. [everywhere]"),
    "sender": Word("Who it is from."),
    "sender_name": Word("What the sender is called."),
    "session": Word("The session of messages that name none, such as 'Sprint 3'."),
    "similar": Word("The part of the words to share."),
    "since": Word("Only what came after.", "TIME"),
    "skills": Word("A JSON object: skills and what they do; @FILE reads one.", "OBJECT", type="json"),
    "source": Word("Where it is from."),
    "span_id": Word("OpenTelemetry span."),
    "strategy": Word("latest_wins, explicit_override or versioned_topics."),
    "strength": Word("1 (weak) to 5 (strong)."),
    "supersedes": Word("What it replaces (may be repeated).", "ID", type="ids"),
    "tags": Word("A tag (may be repeated).", flag="--tag"),
    "target": Word("The id it ends with.", "TARGET", type="id"),
    "text": Word("What to show and search."),
    "thread": Word("In which thread."),
    "threshold": Word("How alike is alike, from 0 to 1."),
    "timezone": Word("Of times that name none: Europe/Berlin.", "ZONE"),
    "topic": Word("A key, a version of one (auth_v2), a tag, or some words.", "TOPIC"),
    "trace": Word("Only of this trace."),
    "trace_id": Word("OpenTelemetry trace."),
    "trigger": Word("What made this version come about."),
    "tx": Word("It begins with what was known then. [now]", "TIME"),
    "type": Word("Only those of this type."),
    "until": Word("Before then.", "TIME"),
    "user": Word("Whose it is."),
    "valid_from": Word("It holds from here on; beginning: always did.", "TIME"),
    "valid_to": Word("It holds until here; open: no end.", "TIME"),
    "window_days": Word("Hold each against those of so many days before it."),
}
