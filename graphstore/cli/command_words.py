"""What the command line says of each parameter: its words by name, the same for every command that has it."""

from typing import NamedTuple


class Help(NamedTuple):
    """A parameter in words. `flag`: its option, by default its name. `type`: what it takes, where its call does not say so."""

    help: str
    metavar: str = ""
    flag: str = ""
    type: str = ""
    is_required: bool = False


EMBEDDER = Help(
    "wordllama, fastembed, openai (with a model), or module:function.", "EMBEDDER", type="embedder"
)
WORDS: dict[str, Help] = {
    "agent": Help("Which agent."),
    "analyze": Help("What describes a segment. [the built-in one]", "MODULE:NAME", "--analyzer"),
    "at": Help("Until when. [now]", "TIME"),
    "at_least": Help("Groups of so many."),
    "before": Help("Only what began before then.", "TIME"),
    "budget_tokens": Help("At most so long. [all of it]", "TOKENS", "--budget"),
    "by": Help("What replaces it.", "NEW"),
    "classification": Help("How it was classified."),
    "computer": Help("Where the sessions ran. [this computer's name]"),
    "confidence": Help("explicit or inferred."),
    "content": Help("A JSON object; @FILE reads a file, - standard input.", "CONTENT"),
    "corrects": Help("What it corrects (may be repeated).", "ID", type="ids"),
    "created_by": Help("Who makes it."),
    "days": Help("Keep events for so many days."),
    "bytes": Help("Keep the journal below this size."),
    "depth": Help("How many steps to follow."),
    "derived_from": Help("What it rests on (may be repeated).", "ID", type="ids"),
    "direction": Help("Along the links, against them, or either way."),
    "fingerprint": Help("Same one, same event."),
    "folder": Help("Where AGENTS.md, SOUL.md, USER.md … are.", "FOLDER"),
    "hops": Help("How many links to follow."),
    "id": Help("An id; of one the store made a unique beginning (6 characters or more).", "ID", type="id"),
    "identity": Help("Who the agent is (may be repeated).", type="many"),
    "ids": Help("What to start from.", "ID...", type="ids"),
    "if_number": Help("Only if that version holds now.", "NUMBER"),
    "into": Help("The summary: an id, or a JSON object for a new one.", "ID|CONTENT"),
    "k": Help("At most so many.", flag="-k"),
    "keep": Help("The one that is right, or: both.", "ID", type="id"),
    "keep_audit": Help("Leave no tombstones either.", flag="--no-audit"),
    "key": Help("The slot it fills, such as deploy_day."),
    "kind": Help("Only nodes of this kind."),
    "kinds": Help("Only links of this kind (may be repeated).", flag="--kind"),
    "larger_than": Help("The oldest, until it is smaller.", "BYTES"),
    "layer": Help("soul, conversation, tool, group, er1, observation, or your own.", "LAYER"),
    "level": Help("Such as project, task, user, tool."),
    "limit": Help("At most so many."),
    "link_id": Help("The link's id, lnk_….", "LINK_ID", type="id"),
    "mapping": Help("Which column is what.", "FILE", type="file"),
    "media_hash": Help("The medium's SHA-256."),
    "media_path": Help("The medium; hashed if it is there.", "FILE"),
    "members": Help("What is summed up.", "ID...", type="ids"),
    "metadata": Help("A JSON object."),
    "warn": Help("Say also what stands already and says the same, or may contradict it."),
    "minor": Help("It says the same: what rests on it does not fall."),
    "most": Help("So many links of a kind from one segment."),
    "name": Help("The branch's name.", "NAME"),
    "new": Help("Another's.", "NEW"),
    "now": Help("As if it were then. [now]", "TIME"),
    "occurred_at": Help("When. [now]", "TIME"),
    "old": Help("A version's number.", "OLD"),
    "origin": Help("What sort of source."),
    "parent_span_id": Help("The span around it."),
    "ended_at": Help("When the span ended.", "TIME"),
    "patch": Help("A JSON object: the fields, and what they are to be.", "FIELDS"),
    "pattern": Help("Part of the description."),
    "project": Help("Only of this project: its path, or the end of it."),
    "query": Help("What is asked.", "TEXT"),
    "reason": Help("Why, in your words."),
    "recent": Help("So many messages at most."),
    "related_to": Help("What it touches (may be repeated).", "ID", type="ids"),
    "replay": Help(
        "Record each at its own time, in a store that is new: then --as-of answers what was known."
    ),
    "scope": Help("Where it applies. [everywhere]"),
    "sender": Help("Who it is from."),
    "sender_name": Help("What the sender is called."),
    "session": Help("The session of messages that name none, such as 'Sprint 3'."),
    "similar": Help("The part of the words to share."),
    "since": Help("Only what came after.", "TIME"),
    "skills": Help("A JSON object: skills and what they do; @FILE reads one.", "OBJECT", type="json"),
    "source": Help("Where it is from."),
    "span_id": Help("OpenTelemetry span."),
    "strategy": Help("latest_wins, explicit_override or versioned_topics."),
    "strength": Help("1 (weak) to 5 (strong)."),
    "supersedes": Help("What it replaces (may be repeated).", "ID", type="ids"),
    "tags": Help("A tag (may be repeated).", flag="--tag"),
    "target": Help("The id it ends with.", "TARGET", type="id"),
    "text": Help("What to show and search."),
    "thread": Help("In which thread."),
    "threshold": Help("How alike is alike, from 0 to 1."),
    "timezone": Help("Of times that name none: Europe/Berlin.", "ZONE"),
    "topic": Help("A key, a version of one (auth_v2), a tag, or some words.", "TOPIC"),
    "trace": Help("Only of this trace."),
    "trace_id": Help("OpenTelemetry trace."),
    "trigger": Help("What made this version come about."),
    "tx": Help("It begins with what was known then. [now]", "TIME"),
    "type": Help("Only those of this type."),
    "until": Help("Before then.", "TIME"),
    "user": Help("Whose it is."),
    "valid_from": Help("It holds from here on; beginning: always did.", "TIME"),
    "valid_to": Help("It holds until here; open: no end.", "TIME"),
    "window_days": Help("Hold each against those of so many days before it."),
}
