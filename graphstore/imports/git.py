"""Imports a repository's history as bitemporal knowledge: authored is valid time, committed is transaction time.

Git keeps a graph of snapshots, this store a sequence of descriptions for each file. These rules map one to the other:

- Commits are walked from `HEAD` back to known ones and written parents first, older first, one transaction each. Branches are interleaved. A merge
  writes what differs from the last description of a file. So after the last commit the standing files are exactly the tree of `HEAD`.
- This flattens the graph into one sequence: a transaction has one instant, and knowledge at T has one answer. Between two commits of parallel
  branches the files are those of neither branch; the report counts such commits as interleaved.
- A commit date not after the last transaction is raised to a microsecond after it. One ahead of the clock is lowered to the same place.
- A change holds from its author date, but not after its commit date, and not before the file's last change: a patch written long ago and rebased
  onto today's file did not change the file long ago.
- A path is one node forever. Deleted and created again, it is the same node with a gap.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dulwich.diff_tree import RenameDetector, TreeChange, tree_changes
from dulwich.errors import NotGitRepository, ObjectFormatException
from dulwich.objects import S_ISGITLINK, Blob, Commit, Tag
from dulwich.repo import Repo

from graphstore.errors import ConflictError, InvalidError
from graphstore.store.import_report import Importing, ImportReport
from graphstore.values.models import Event
from graphstore.values.period import BEGINNING, Instant, instant, moment

if TYPE_CHECKING:
    from graphstore.store.store import Store

Progress = Callable[[int, int], None]

EMPTY_BLOB = b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
SNIFFED = 8000
"""Git treats a file with a NUL in its first 8000 bytes as binary."""

_REVERTS = re.compile(r"\bThis reverts commit ([0-9a-f]{7,64})\b")


class GitReport(ImportReport):
    """What an import wrote, and what in the history was not as it should be."""

    repository: str
    commits: int = 0
    merges: int = 0
    files: int = 0
    versions: int = 0
    renames: int = 0
    deletions: int = 0
    reverts: int = 0
    links: int = 0
    interleaved: int = 0
    """Commits whose first parent is not the commit written before them: branches that ran in parallel, in one sequence."""
    commit_dates_raised: int = 0
    """Dated before the commit written before them."""
    commit_dates_shared: int = 0
    """Dated the same second as the commit written before them."""
    commit_dates_lowered: int = 0
    """Dated ahead of the clock."""
    author_dates_lowered: int = 0
    """Authored later than committed."""
    changes_moved: int = 0
    """File changes authored before the file's last change, moved to just after it."""
    renames_unlinked: int = 0
    """Renames whose continuation would close a circle or run backwards; the version still says `renamed_from`."""
    reverts_unresolved: int = 0
    """Reverts of a commit that this history does not have."""
    submodules: int = 0
    """Changes of a submodule's commit, skipped."""
    paths_escaped: int = 0
    """Paths that are not UTF-8, written with `\\xNN`."""
    blobs_missing: int = 0
    """Versions without size and lines: a partial clone does not have the file."""
    shallow: bool = False
    """The history was cut off: its oldest commits stand for all that came before."""

    _read, _written = "commits", ("commits",)
    _counted = {
        "interleaved": "commits of parallel branches put into one sequence: between them the files are those of no branch",
        "commit_dates_raised": "commit dates raised",
        "commit_dates_lowered": "commit dates lowered",
        "author_dates_lowered": "author dates lowered",
        "changes_moved": "changes moved",
        "renames_unlinked": "renames unlinked",
        "reverts_unresolved": "reverts unresolved",
        "paths_escaped": "paths escaped",
        "blobs_missing": "blobs missing",
    }

    def _headline(self) -> str:
        return f"{self.repository}: {self.commits} commits, {self.files} files, {self.versions} versions"


def import_git(
    store: Store, path: str | Path, *, ref: str = "HEAD", progress: Progress | None = None
) -> GitReport:
    """Write the commits reachable from `ref` that the store does not have yet.

    Raise InvalidError if `path` is in no repository, or the repository has no such ref.
    """
    with _opened(path) as repo:
        head = _head(repo, ref)
        known = {event.id.removeprefix("commit:"): event for event in store.events(type="commit")}
        pending, met, shallow = _pending(repo, head, known)
        scope = str(met.metadata.get("repository") or "") if met else ""
        writing = _HistoryImport(store, repo, scope or _name(repo), known)
        with store.together():  # what a crash undoes, the next import writes again
            for done, sha in enumerate(pending, start=1):
                writing.commit(sha)
                if progress:
                    progress(done, len(pending))
        return writing.report(repository=writing.scope, shallow=shallow)


# ---- reading the repository -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TreeFile:
    """A file as a commit has it."""

    mode: int
    blob: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one path by a commit: the new file, or None if it was deleted; and its previous path, if it was renamed."""

    path: bytes
    entry: _TreeFile | None
    renamed_from: bytes | None = None


def _opened(path: str | Path) -> Repo:
    try:
        return Repo.discover(str(path))
    except (NotGitRepository, FileNotFoundError, NotADirectoryError):
        raise InvalidError(
            f"{str(path)!r} is in no git repository. Give a clone's folder, bare or not."
        ) from None


def _head(repo: Repo, ref: str) -> bytes | None:
    """Return the commit that a ref names; None for the HEAD of a repository without commits."""
    for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/remotes/{ref}"):
        try:
            found: Any = repo[repo.refs[name.encode()]]  # type: ignore[index]
        except (KeyError, ValueError):
            continue
        while isinstance(found, Tag):
            found = repo[found.object[1]]
        if isinstance(found, Commit):
            return found.id
    if ref == "HEAD":
        return None
    raise InvalidError(f"the repository has no ref {ref!r}. Give a branch, a tag or HEAD.")


def _name(repo: Repo) -> str:
    """Return the name of the repository: from its origin, else from its folder."""
    try:
        called = repo.get_config().get((b"remote", b"origin"), b"url").decode(errors="replace")
    except KeyError:
        called = str(Path(repo.path).resolve())
    return re.split(r"[/\\:]", called.rstrip("/\\"))[-1].removesuffix(".git") or "repository"


def _pending(
    repo: Repo, head: bytes | None, known: dict[str, Event]
) -> tuple[list[bytes], Event | None, bool]:
    """Return the commits to write in order, a known commit that they build on, and True if the history is cut off."""
    dates: dict[bytes, int] = {}
    children: dict[bytes, list[bytes]] = {}
    waiting: Counter[bytes] = Counter()
    met: Event | None = None
    shallow = False
    todo = [head] if head else []
    while todo:
        sha = todo.pop()
        if sha in dates:
            continue
        if event := known.get(sha.decode()):
            met = event
            continue
        commit = _commit(repo, sha)
        dates[sha] = commit.commit_time or 0
        parents = _parents(repo, commit)
        shallow |= len(parents) < len(set(commit.parents))
        for parent in parents:
            if parent.decode() not in known:
                children.setdefault(parent, []).append(sha)
                waiting[sha] += 1
            todo.append(parent)
    ready = [(date, sha) for sha, date in dates.items() if not waiting[sha]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, sha = heapq.heappop(ready)
        order.append(sha)
        for child in children.get(sha, ()):
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (dates[child], child))
    return order, met, shallow


def _commit(repo: Repo, sha: bytes) -> Commit:
    found = repo[sha]
    assert isinstance(found, Commit)
    return found


def _parents(repo: Repo, commit: Commit) -> list[bytes]:
    """Return the parents that exist here: a shallow clone names some that it does not have."""
    named = repo.get_parents(commit.id, commit)
    return [parent for parent in dict.fromkeys(named) if parent in repo.object_store]


def _changes(repo: Repo, commit: Commit) -> Iterator[_Change]:
    """Yield the changes of a commit against its parent. For a merge, yield each path once that differs from one of its parents."""
    trees = [_commit(repo, parent).tree for parent in _parents(repo, commit)] or [None]
    diffs = [_diff(repo, tree, commit.tree) for tree in trees]
    made = set.intersection(*map(_made, diffs))
    if made:  # only a path that no parent has can be the target of a rename
        diffs = [
            _with_renames(repo, tree, commit.tree, diff) for tree, diff in zip(trees, diffs, strict=True)
        ]
    found = [change for diff in diffs for change in diff]
    files: dict[bytes, Any] = {change.new.path: change.new for change in found if change.new}
    gone = {change.old.path for change in found if change.old and change.type in ("delete", "rename")}
    renames = [(change.new, change.old) for change in found if change.type == "rename"]
    # if the parents disagree about a rename, the first parent counts
    before = {new.path: old.path for new, old in reversed(renames) if new and old and new.path in made}
    for path, file in files.items():
        yield _Change(path, _TreeFile(file.mode, file.sha.decode()), before.get(path))
    for path in sorted(gone - files.keys()):
        yield _Change(path, None)


def _made(diff: list[TreeChange]) -> set[bytes]:
    """Return the paths that did not exist before."""
    news = {change.new.path for change in diff if change.new is not None}
    return news - {change.old.path for change in diff if change.old is not None}


def _diff(repo: Repo, old: Any, new: Any) -> list[TreeChange]:
    try:
        return list(tree_changes(repo.object_store, old, new))
    except KeyError as missing:
        raise InvalidError(
            f"the repository lacks object {missing}: a clone without folders (--filter=tree:0) cannot be read. "
            "Clone it whole, or with --filter=blob:none."
        ) from None


def _with_renames(repo: Repo, old: Any, new: Any, diff: list[TreeChange]) -> list[TreeChange]:
    """Return the difference of two trees with renames detected, if the needed contents are available."""
    if not {change.type for change in diff} >= {"add", "delete"}:
        return diff
    try:
        detected = RenameDetector(repo.object_store).changes_with_renames(old, new)
    except KeyError:  # a partial clone lacks the contents to compare
        return diff
    return [part for change in detected for part in _unless_empty(change)]


def _unless_empty(change: TreeChange) -> list[TreeChange]:
    """Return a rename of an empty file as a deletion and an addition, and any other change as it is: all empty files are equal."""
    if change.type == "rename" and change.new is not None and change.new.sha == EMPTY_BLOB:
        return [TreeChange.delete(change.old), TreeChange.add(change.new)]  # type: ignore[arg-type]
    return [change]


def _text(data: bytes, encoding: bytes | None = None) -> str:
    """Return bytes as text: in the commit's own encoding, else UTF-8, else Latin-1, which accepts anything."""
    for name in ((encoding or b"utf-8").decode("ascii", "replace"), "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("latin-1")


def _person(line: bytes, encoding: bytes | None) -> tuple[str, str]:
    name, _, email = _text(line, encoding).partition("<")
    return name.strip(), email.rstrip("> \t")


def _date(seconds: int | None, offset: int | None) -> datetime | None:
    """Return a date of git in its own time zone; None if it is outside the years 1 to 9999."""
    if seconds is None:
        return None
    try:
        zone = timezone(timedelta(seconds=offset or 0))
    except ValueError:
        zone = UTC
    try:
        return datetime.fromtimestamp(0, UTC).astimezone(zone) + timedelta(seconds=seconds)
    except OverflowError:
        return None


# ---- writing ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _FileNode:
    """The node of a path: the start of its last description, and the file described then (None: deleted)."""

    id: str
    since: Instant
    entry: _TreeFile | None


class _Header:
    """Holds the header and message of a commit, decoded."""

    def __init__(self, commit: Commit) -> None:
        self.sha = commit.id.decode()
        self.event = f"commit:{self.sha}"
        encoding = commit.encoding
        message = _text(commit.message or b"", encoding).strip()
        self.subject, _, self.body = (part.strip() for part in message.partition("\n"))
        self.message = message
        self.author, self.email = _person(commit.author or b"", encoding)
        self.committer, self.committer_email = _person(commit.committer or b"", encoding)
        self.committed = _date(commit.commit_time, commit.commit_timezone) or moment(0)
        self.authored = _date(*_authored(commit)) or self.committed
        self.parents = [parent.decode() for parent in commit.parents]

    def metadata(self, scope: str, files: int) -> dict[str, Any]:
        fields = {
            "repository": scope,
            "author": self.author,
            "email": self.email,
            "committer": self.committer,
            "committer_email": self.committer_email,
            "author_date": self.authored.isoformat(),
            "commit_date": self.committed.isoformat(),
            "parents": self.parents,
            "files": files,
        }
        return {**fields, "body": self.body} if self.body else fields


def _authored(commit: Commit) -> tuple[int | None, int | None]:
    try:
        return commit.author_time, commit.author_timezone
    except (AttributeError, ObjectFormatException):
        return None, None


class _HistoryImport(Importing[GitReport]):
    """Runs one import: the files as last described, and the counts of the report."""

    def __init__(self, store: Store, repo: Repo, scope: str, known: dict[str, Event]) -> None:
        super().__init__(store, repo.path, GitReport)
        self.repo = repo
        self.scope = scope
        self.occurred = {sha: instant(event.occurred_at) for sha, event in known.items()}
        last = store.stats()["last_tx"]
        self.last: Instant = instant(last) if last else BEGINNING
        self.before: bytes | None = None  # the commit that was written last
        self.files: dict[str, _FileNode] = {}
        for node in store.nodes(kind="file", scope=scope):
            if "path" in node.content:
                entry = _TreeFile(int(node.content.get("mode", "0"), 8), str(node.content.get("blob")))
                self.files[node.content["path"]] = _FileNode(node.id, instant(node.valid_from), entry)

    def commit(self, sha: bytes) -> None:
        """Write one commit in one transaction: its event, its changes, and what it reverts."""
        commit = _commit(self.repo, sha)
        header = _Header(commit)
        changes = list(self._news(_changes(self.repo, commit)))
        with ExitStack() as stack:
            at = self._begin(stack, header)
            authored = min(instant(header.authored), at)
            self.counts["author_dates_lowered"] += authored < instant(header.authored)
            recorded = self.store.record_event(
                "commit",
                header.subject or "(no message)",
                id=header.event,
                occurred_at=moment(authored),
                source="git",
                metadata=header.metadata(self.scope, len(changes)),
            )
            self.occurred[header.sha] = authored
            for change in changes:
                self._change(change, header, authored)
            self._revert(header, authored)
        self.last = instant(recorded.event.tx_from)
        self.counts["commits"] += 1
        self.counts["interleaved"] += self.before not in (None, *commit.parents[:1])
        self.before = sha
        self.counts["merges"] += len(commit.parents) > 1

    def _begin(self, stack: ExitStack, header: _Header) -> Instant:
        """Enter a transaction at the commit's date, or as near to it as the store allows. Return its instant."""
        wanted = instant(header.committed)
        options = [wanted] if wanted > self.last else []
        options += [self.last + 1] if self.last > BEGINNING else []
        author = f"{header.author} <{header.email}>"
        for at in options:
            try:
                stack.enter_context(
                    self.store.transaction(at=moment(at), author=author, reason=header.subject or None)
                )
            except (InvalidError, ConflictError):
                continue
            if at < wanted:
                self.counts["commit_dates_lowered"] += 1
            elif at > wanted:
                shared = wanted // 1_000_000 == self.last // 1_000_000
                self.counts["commit_dates_shared" if shared else "commit_dates_raised"] += 1
            return at
        # A view of a later instant was already used: only the present is possible.
        stack.enter_context(self.store.transaction(author=author, reason=header.subject or None))
        self.counts["commit_dates_raised"] += 1
        return instant(self.store.at.tx)

    def _news(self, changes: Iterable[_Change]) -> Iterator[_Change]:
        """Yield the changes that are new: another branch may have written the same. A submodule does not count as a file."""
        for change in changes:
            if change.entry and S_ISGITLINK(change.entry.mode):
                self.counts["submodules"] += 1
                change = _Change(change.path, None)
            file = self.files.get(self._path(change.path))
            if change.entry != (file.entry if file else None):
                yield change

    def _path(self, raw: bytes) -> str:
        return raw.decode("utf-8", "backslashreplace")

    def _change(self, change: _Change, header: _Header, authored: Instant) -> None:
        path = self._path(change.path)
        file = self.files.get(path)
        at = authored
        if file and authored <= file.since:
            at = file.since + 1
            self.counts["changes_moved"] += 1
        if change.entry is None:
            assert file is not None
            self.store.end(file.id, at=moment(at))
            self.files[path] = _FileNode(file.id, at, None)
            self._link(file.id, "caused_by", header.event, at, "deleted")
            self.counts["deletions"] += 1
            return
        renamed_from = self._path(change.renamed_from) if change.renamed_from else None
        how = "modified" if file else "added"
        if renamed_from or len(header.parents) > 1:
            how = "renamed" if renamed_from else "merged"
        about = {"path": path, "change": how, **self._content(change.entry)}
        content = {**about, "commit": header.sha, "author": header.author}
        if renamed_from:
            content["renamed_from"] = renamed_from
        written = self._describe(path, file, content, at)
        written.entry = change.entry
        self.files[path] = written
        self._link(written.id, "caused_by", header.event, written.since, how)
        self.counts["versions"] += 1
        self.counts["paths_escaped"] += file is None and path.encode() != change.path
        if renamed_from:
            self._continue(renamed_from, written, header)

    def _content(self, entry: _TreeFile) -> dict[str, Any]:
        content: dict[str, Any] = {"mode": f"{entry.mode:06o}", "blob": entry.blob}
        content |= {"size": None, "lines": None}
        try:
            blob = self.repo.object_store[entry.blob.encode()]  # type: ignore[index]
        except KeyError:
            self.counts["blobs_missing"] += 1
            return content
        assert isinstance(blob, Blob)
        data = blob.data
        content["size"] = len(data)
        content["binary"] = b"\0" in data[:SNIFFED]
        if not content["binary"]:
            content["lines"] = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        return content

    def _describe(self, path: str, file: _FileNode | None, content: dict[str, Any], at: Instant) -> _FileNode:
        """Write the next version of a file, or its first."""
        about: dict[str, Any] = {"trigger": "commit", "source": "git"}
        again: dict[str, Any] = {**about, "minor": True}
        if file:
            self.store.revise(file.id, content, text=path, valid_from=moment(at), **again)
            return _FileNode(file.id, at, None)
        # If another repository in the store has a file with this path, the id includes the name of this repository.
        name = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", path)  # fit for an id
        for id in (f"file:{name}", f"file:{self.scope}/{name}"):
            try:
                self.store.add_node(
                    "file", content, id=id, text=path, valid_from=moment(at), scope=self.scope, **about
                )
            except ConflictError:
                held = self.store.inspect(id)
                if getattr(held.node, "scope", None) != self.scope:
                    continue
                ends = [instant(version.valid_to or version.valid_from) for version in held.history]
                at = max([at, *(end + 1 for end in ends)])
                self.store.revise(id, content, text=path, valid_from=moment(at), **again)
            else:
                self.counts["files"] += 1
            return _FileNode(id, at, None)
        raise ConflictError(
            f"the store has other things under the ids 'file:{name}' and 'file:{self.scope}/{name}'."
        )

    def _continue(self, renamed_from: str, written: _FileNode, header: _Header) -> None:
        self.counts["renames"] += 1
        old = self.files.get(renamed_from)
        try:
            if old is None:
                raise ConflictError(f"no file {renamed_from!r}")
            self._link(old.id, "continuation", written.id, written.since, f"renamed by {header.sha[:12]}")
        except (ConflictError, InvalidError):
            self.counts["renames_unlinked"] += 1

    def _revert(self, header: _Header, authored: Instant) -> None:
        for sha in dict.fromkeys(_REVERTS.findall(header.message)):
            reverted = self._full(sha, header.sha)
            if reverted is None:
                self.counts["reverts_unresolved"] += 1
                continue
            at = max(authored, self.occurred[reverted])
            self._link(header.event, "supersedes", f"commit:{reverted}", at, header.subject)
            self._link(header.event, "contradicts", f"commit:{reverted}", at, header.subject)
            self.counts["reverts"] += 1

    def _full(self, sha: str, own: str) -> str | None:
        if sha in self.occurred:
            return sha if sha != own else None
        found = [known for known in self.occurred if known.startswith(sha) and known != own]
        return found[0] if len(found) == 1 else None

    def _link(self, source: str, kind: str, target: str, at: Instant, reason: str) -> None:
        self.store.link(
            source, kind, target, valid_from=moment(at), reason=reason or None, created_by="agent"
        )
        self.counts["links"] += 1
