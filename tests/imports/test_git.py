"""A repository's history in the store: small repositories made commit by commit, and this project's own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dulwich.index import commit_tree
from dulwich.objects import Blob, Commit, Tag
from dulwich.repo import Repo

import graphstore
from graphstore import GraphStore, InvalidError, NotFoundError
from graphstore.imports import import_git
from graphstore.imports.git import GitReport
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("reads repositories of the test")

LINES = b"".join(b"line %d\n" % number for number in range(20))
SUBMODULE = 0o160000

Files = Mapping[str | bytes, bytes | tuple[int, bytes]]


class Making:
    """A repository written object by object, so that a test says every date, parent and byte."""

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        path.mkdir(parents=True)
        self.repo = Repo.init_bare(str(path)) if bare else Repo.init(str(path))
        self.path = path

    def commit(
        self,
        files: Files,
        authored: str,
        committed: str | None = None,
        *,
        message: str | bytes = "a change",
        parents: tuple[str, ...] | None = None,
        author: bytes = b"Ada <ada@example.org>",
        zone: int = 0,
        encoding: bytes | None = None,
    ) -> str:
        """A commit of the whole tree `files`; by default on top of the last one. Returns its sha."""
        commit = Commit()
        commit.tree = commit_tree(
            self.repo.object_store, [self._entry(path, data) for path, data in files.items()]
        )
        commit.author, commit.committer = author, b"Charles <charles@example.org>"
        commit.author_time, commit.author_timezone = seconds(authored), zone
        commit.commit_time, commit.commit_timezone = seconds(committed or authored), zone
        commit.message = message if isinstance(message, bytes) else message.encode()
        if encoding:
            commit.encoding = encoding
        if parents is None:
            parents = (self.head,) if self.head else ()
        commit.parents = [parent.encode() for parent in parents]
        self.repo.object_store.add_object(commit)
        self.repo.refs[b"refs/heads/main"] = commit.id
        self.repo.refs.set_symbolic_ref(b"HEAD", b"refs/heads/main")
        return commit.id.decode()

    @property
    def head(self) -> str | None:
        try:
            return self.repo.refs[b"refs/heads/main"].decode()
        except KeyError:
            return None

    def _entry(self, path: str | bytes, data: bytes | tuple[int, bytes]) -> tuple[bytes, bytes, int]:
        mode, content = data if isinstance(data, tuple) else (0o100644, data)
        raw = path.encode() if isinstance(path, str) else path
        if mode == SUBMODULE:
            return raw, content, mode
        blob = Blob.from_string(content)
        self.repo.object_store.add_object(blob)
        return raw, blob.id, mode


def seconds(text: str) -> int:
    return int(instant(text).timestamp())


def instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@pytest.fixture
def made(tmp_path: Path) -> Making:
    return Making(tmp_path / "project")


def paths(store: GraphStore) -> set[str]:
    return {node.content["path"] for node in store.nodes(kind="file")}


def counts(report: GitReport) -> dict[str, int]:
    return {
        name: value
        for name, value in report
        if value and isinstance(value, int) and not isinstance(value, bool)
    }


# ---- what a history becomes -------------------------------------------------------------------


@pytest.fixture
def told(made: Making, store: GraphStore) -> dict[str, str]:
    """A file is added, changed, renamed with its content nearly kept, and deleted."""
    shas = {
        "add": made.commit({"a.py": LINES}, "2024-01-01", "2024-01-03", message="add a\n\nwith a body"),
        "change": made.commit({"a.py": LINES + b"more\n"}, "2024-02-01", "2024-02-02"),
        "rename": made.commit(
            {"b.py": LINES + b"more\nand more\n"}, "2024-03-01", "2024-03-02", message="call it b"
        ),
        "delete": made.commit({"other": b"x"}, "2024-04-01", "2024-04-02"),
    }
    shas["report"] = str(import_git(store, made.path))
    return shas


def test_a_version_holds_from_its_author_date_and_is_believed_from_its_commit_date(store, told):
    first, second = store.versions("file:a.py")[:2]

    assert (day("2024-01-01"), day("2024-01-03")) == (first.valid_from, first.tx_from)
    assert day("2024-02-02") == second.tx_from
    assert 20 == store.as_of(valid="2024-01-20").node("file:a.py").content["lines"]
    assert 21 == store.as_of(valid="2024-02-20").node("file:a.py").content["lines"]
    assert 20 == store.as_of(valid="2024-02-20", tx="2024-02-01T12:00:00Z").node("file:a.py").content["lines"]


def test_content_of_a_version_is_what_git_keeps_of_the_file(store, told):
    content = store.as_of(valid="2024-01-20").node("file:a.py").content

    assert {
        "path": "a.py",
        "change": "added",
        "mode": "100644",
        "blob": Blob.from_string(LINES).id.decode(),
        "size": len(LINES),
        "lines": 20,
        "binary": False,
        "commit": told["add"],
        "author": "Ada",
    } == content


def test_a_commit_is_an_event_at_its_author_date(store, told):
    event = store.event(f"commit:{told['add']}")

    assert ("commit", "add a", day("2024-01-01"), day("2024-01-03")) == (
        event.type,
        event.description,
        event.occurred_at,
        event.tx_from,
    )
    assert ("Ada", "ada@example.org", "with a body", 1, "project") == tuple(
        event.metadata[name] for name in ("author", "email", "body", "files", "repository")
    )


def test_a_rename_ends_the_old_path_and_continues_as_the_new_one(store, told):
    [link] = store.links_from("file:a.py", "continuation")

    assert ("file:b.py", day("2024-03-01")) == (link.target, link.valid_from)
    assert day("2024-03-01") == store.history("file:a.py")[-1].valid_to
    assert "a.py" == store.as_of(valid="2024-03-20").node("file:b.py").content["renamed_from"]
    assert "ended" == store.inspect("file:a.py").node.standing


def test_a_deletion_ends_the_file_at_its_author_date(store, told):
    with pytest.raises(NotFoundError, match="ended"):
        store.node("file:b.py")

    assert day("2024-04-01") == store.history("file:b.py")[-1].valid_to
    assert "b.py" == store.as_of(valid="2024-05-01", tx="2024-04-01").node("file:b.py").content["path"]


def test_a_file_was_caused_by_each_commit_that_changed_it(store, told):
    changed = [f"commit:{told[name]}" for name in ("add", "change", "rename")]

    assert changed == [link.target for link in store.links_from("file:a.py", "caused_by")]
    assert set(changed) == {thing.id for thing in store.causes("file:a.py", depth=1).nodes}
    assert {"file:a.py", "file:b.py"} == {thing.id for thing in store.effects(changed[2]).nodes}


def test_each_commit_is_one_transaction_by_its_author(store, told):
    of_commits = {change.tx: change for change in store.changes()}

    assert 4 == len(of_commits)
    assert {"Ada <ada@example.org>"} == {change.author for change in of_commits.values()}


def test_report_counts_what_was_written(made, store):
    made.commit({"a": LINES, "b": b"1\n"}, "2024-01-01")
    made.commit({"c": LINES, "b": b"2\n"}, "2024-01-02")
    report = import_git(store, made.path)

    assert {"commits": 2, "files": 3, "versions": 4, "renames": 1, "deletions": 1, "links": 6} == counts(
        report
    )
    assert "project: 2 commits, 3 files, 4 versions" == str(report)


# ---- importing again --------------------------------------------------------------------------


def test_importing_again_adds_only_what_is_new(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n", "gone": b"x\n"}, "2024-01-02")
    import_git(store, made.path)
    before = store.stats()

    assert {} == counts(import_git(store, made.path))
    assert before == store.stats()

    made.commit({"a": b"3\n"}, "2024-01-03")
    made.commit({"a": b"3\n", "gone": b"y\n"}, "2024-01-04")
    report = import_git(store, made.path)

    assert {"commits": 2, "versions": 2, "deletions": 1, "links": 3} == counts(report)
    assert [1, 2, 3] == [version.number for version in store.history("file:a")]
    assert [day("2024-01-03"), None] == [version.valid_to for version in store.history("file:gone")]


def test_a_stopped_import_goes_on_where_it_stopped(made, store):
    for number in range(1, 6):
        made.commit({"a": b"%d\n" % number}, f"2024-01-0{number}")

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_git(store, made.path, progress=stop)
    assert 3 == len(store.history("file:a"))

    assert 2 == import_git(store, made.path).commits
    assert 5 == len(store.history("file:a"))


def test_a_clone_by_another_name_is_the_same_repository(made, store, tmp_path):
    made.commit({"a": b"1\n"}, "2024-01-01")
    import_git(store, made.path)
    made.commit({"a": b"2\n"}, "2024-01-02")
    clone = made.path.rename(tmp_path / "renamed")
    report = import_git(store, clone)

    assert ("project", 1) == (report.repository, report.commits)
    assert {"project"} == {node.scope for node in store.nodes(kind="file")}


def test_two_repositories_in_one_store_keep_their_files_apart(store, tmp_path):
    one, two = Making(tmp_path / "one"), Making(tmp_path / "two")
    one.commit({"README": b"1\n", "a": b"a\n"}, "2024-01-01")
    two.commit({"README": b"2\n"}, "2024-01-02")
    import_git(store, one.path)
    import_git(store, two.path)
    two.commit({"README": b"3\n"}, "2024-01-03")
    import_git(store, two.path)

    assert {"file:README", "file:a"} == {node.id for node in store.nodes(scope="one")}
    assert [1, 2] == [version.number for version in store.history("file:two/README")]
    assert [1] == [version.number for version in store.history("file:README")]


def test_origin_names_the_repository(made, store):
    config = made.repo.get_config()
    config.set((b"remote", b"origin"), b"url", b"git@example.org:someone/tool.git")
    config.write_to_path()
    made.commit({"a": b"1\n"}, "2024-01-01")

    assert "tool" == import_git(store, made.path).repository


# ---- dates ------------------------------------------------------------------------------------


def test_commit_dates_that_run_backwards_are_raised_and_counted(made, store):
    made.commit({"a": b"1\n"}, "2024-01-05")
    made.commit({"a": b"2\n"}, "2024-01-03")
    made.commit({"a": b"3\n"}, "2024-01-05")
    report = import_git(store, made.path)
    tick = timedelta(microseconds=1)

    assert [day("2024-01-05"), day("2024-01-05") + tick, day("2024-01-05") + 2 * tick] == sorted(
        {version.tx_from for version in store.versions("file:a")}
    )
    assert (1, 1) == (report.commit_dates_raised, report.commit_dates_shared)


def test_a_change_authored_before_the_files_last_one_holds_from_just_after_it(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n"}, "2024-03-01")
    made.commit({"a": b"3\n", "new": b"x\n"}, "2024-02-01", "2024-04-01")
    report = import_git(store, made.path)
    history = store.history("file:a")

    assert 1 == report.changes_moved
    assert [1, 2, 3] == [version.number for version in history]
    assert day("2024-03-01") + timedelta(microseconds=1) == history[-1].valid_from
    assert day("2024-02-01") == store.node("file:new").valid_from


def test_a_deletion_authored_before_the_files_last_change_ends_it_just_after(made, store):
    made.commit({"a": b"1\n", "b": b"1\n"}, "2024-03-01")
    made.commit({"b": b"1\n"}, "2024-02-01", "2024-04-01")
    import_git(store, made.path)

    assert day("2024-03-01") + timedelta(microseconds=1) == store.history("file:a")[-1].valid_to


def test_nothing_is_true_later_than_it_was_committed(made, store):
    made.commit({"a": b"1\n"}, "2031-01-01", "2024-01-01")
    sha = made.commit({"a": b"2\n"}, "2024-01-02")
    report = import_git(store, made.path)

    assert 1 == report.author_dates_lowered
    assert [day("2024-01-01"), day("2024-01-02")] == [
        version.valid_from for version in store.history("file:a")
    ]
    assert sha == store.node("file:a").content["commit"]


def test_a_commit_dated_ahead_of_the_clock_does_not_drag_the_others_along(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n"}, "2038-01-19")
    made.commit({"a": b"3\n"}, "2024-01-02")
    report = import_git(store, made.path)

    assert (1, 0) == (report.commit_dates_lowered, report.commit_dates_raised)
    assert 3 == store.knowledge_at("2024-01-02").node("file:a").number


def test_history_older_than_the_store_is_raised_to_after_it(made, store):
    store.add_node("fact", {"a": 1}, id="something")
    made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n"}, "2024-01-02")
    report = import_git(store, made.path)

    assert 2 == report.commit_dates_raised
    assert [day("2024-01-01"), day("2024-01-02")] == [
        version.valid_from for version in store.history("file:a")
    ]


def test_history_is_imported_after_a_view_of_the_present_was_handed_out(made, store, clock):
    store.as_of()
    clock.move(days=1)
    made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n"}, "2024-01-02")

    assert 2 == import_git(store, made.path).commits
    assert 2 == store.node("file:a").number


def test_dates_keep_their_time_zone_in_the_event_and_are_utc_elsewhere(made, store):
    sha = made.commit({"a": b"1\n"}, "2024-01-01T12:00:00+09:00", zone=9 * 3600)
    import_git(store, made.path)
    event = store.event(f"commit:{sha}")

    assert "2024-01-01T12:00:00+09:00" == event.metadata["author_date"]
    assert instant("2024-01-01T03:00:00+00:00") == event.occurred_at
    assert timedelta() == event.occurred_at.utcoffset()


# ---- branches ---------------------------------------------------------------------------------


def test_a_merge_writes_what_it_left_different_from_the_last_description(made, store):
    base = made.commit({"ours": b"0\n", "both": b"0\n", "same": b"0\n"}, "2024-01-01")
    left = made.commit({"ours": b"left\n", "both": b"left\n", "same": b"0\n"}, "2024-01-02", parents=(base,))
    right = made.commit(
        {"ours": b"right\n", "both": b"right\n", "same": b"0\n"}, "2024-01-03", parents=(base,)
    )
    merge = made.commit(
        {"ours": b"left\n", "both": b"left and right\n", "same": b"0\n"}, "2024-01-04", parents=(left, right)
    )
    report = import_git(store, made.path)

    assert (1, 4) == (report.merges, report.commits)
    assert [4, 4, 1] == [store.node(f"file:{name}").number for name in ("ours", "both", "same")]
    assert ["merged", merge] == [store.node("file:both").content[name] for name in ("change", "commit")]
    assert Blob.from_string(b"left\n").id.decode() == store.node("file:ours").content["blob"]


def test_a_merge_that_only_brings_branches_together_changes_no_file(made, store):
    base = made.commit({"a": b"0\n", "b": b"0\n"}, "2024-01-01")
    left = made.commit({"a": b"1\n", "b": b"0\n"}, "2024-01-02", parents=(base,))
    right = made.commit({"a": b"0\n"}, "2024-01-03", parents=(base,))
    merge = made.commit({"a": b"1\n"}, "2024-01-04", parents=(left, right))
    import_git(store, made.path)

    assert 0 == store.event(f"commit:{merge}").metadata["files"]
    assert (2, {"a"}) == (store.node("file:a").number, paths(store))


def _two_branches(made: Making) -> tuple[str, str]:
    """Two commits on top of one that has `a`, each with a file of its own."""
    base = made.commit({"a": LINES}, "2024-01-01")
    left = made.commit({"a": LINES, "left": b"1\n"}, "2024-01-02", parents=(base,))
    return left, made.commit({"a": LINES, "right": b"another\n"}, "2024-01-03", parents=(base,))


def test_commits_of_parallel_branches_are_one_sequence_and_the_report_says_so(made, store):
    base = made.commit({"a": b"0\n", "b": b"0\n"}, "2024-01-01")
    left = made.commit({"a": b"1\n", "b": b"0\n"}, "2024-01-02", parents=(base,))
    right = made.commit({"a": b"0\n", "b": b"1\n"}, "2024-01-03", parents=(base,))
    made.commit({"a": b"1\n", "b": b"1\n"}, "2024-01-04", parents=(left, right))
    report = import_git(store, made.path)

    assert 2 == report.interleaved
    assert "2 commits of parallel branches put into one sequence" in str(report)


def test_a_straight_history_has_no_commit_of_a_parallel_branch(made, store):
    for number in range(1, 4):
        made.commit({"a": b"%d\n" % number}, f"2024-01-0{number}")

    assert 0 == import_git(store, made.path).interleaved


def test_a_rename_in_a_merge_is_a_rename(made, store):
    files = {"b": LINES + b"more\n", "left": b"1\n", "right": b"another\n"}
    made.commit(files, "2024-01-04", parents=_two_branches(made))
    report = import_git(store, made.path)

    assert set(files) == paths(store)
    assert (4, 1, 1) == (report.commits, report.renames, report.deletions)
    assert ["renamed", "a"] == [store.node("file:b").content[name] for name in ("change", "renamed_from")]
    assert ["file:b"] == [link.target for link in store.links_from("file:a", "continuation")]
    assert day("2024-01-04") == store.history("file:a")[-1].valid_to


def test_a_file_of_one_branch_that_a_merge_renames_continues(made, store):
    made.commit(
        {"a": LINES, "left": b"1\n", "right-hand": b"another\n"}, "2024-01-04", parents=_two_branches(made)
    )
    report = import_git(store, made.path)

    assert ({"a", "left", "right-hand"}, 1) == (paths(store), report.renames)
    assert "right" == store.node("file:right-hand").content["renamed_from"]


def test_a_file_that_a_merge_removes_from_all_its_parents_ends_once(made, store):
    made.commit({"left": b"1\n", "right": b"another\n"}, "2024-01-04", parents=_two_branches(made))
    report = import_git(store, made.path)

    assert ({"left", "right"}, 0, 1) == (paths(store), report.renames, report.deletions)


def test_a_rename_of_one_branch_is_no_second_one_where_it_is_merged(made, store):
    base = made.commit({"a": LINES}, "2024-01-01")
    left = made.commit({"b": LINES}, "2024-01-02", parents=(base,))
    right = made.commit({"a": LINES + b"more\n"}, "2024-01-03", parents=(base,))
    made.commit({"b": LINES + b"more\n"}, "2024-01-04", parents=(right, left))
    report = import_git(store, made.path)

    assert ({"b"}, 1, 0) == (paths(store), report.renames, report.renames_unlinked)
    assert "merged" == store.node("file:b").content["change"]


def test_octopus_with_several_roots(made, store):
    roots = tuple(
        made.commit({name: b"1\n"}, f"2024-01-0{day_}", parents=())
        for day_, name in enumerate("abc", start=1)
    )
    made.commit({"a": b"1\n", "b": b"1\n", "c": b"1\n"}, "2024-01-04", parents=roots)
    report = import_git(store, made.path)

    assert (4, 1, 3, 3) == (report.commits, report.merges, report.files, report.versions)


def test_parents_come_before_children_whatever_their_dates(made, store):
    base = made.commit({"a": b"0\n"}, "2024-05-01")
    left = made.commit({"a": b"1\n"}, "2024-01-01", parents=(base,))
    right = made.commit({"a": b"0\n", "b": b"0\n"}, "2024-01-02", parents=(base,))
    made.commit({"a": b"1\n", "b": b"0\n"}, "2024-06-01", parents=(right, left))
    import_git(store, made.path)
    order = [event.id for event in sorted(store.events(type="commit"), key=lambda event: event.tx_from)]

    assert [f"commit:{sha}" for sha in (base, left, right)] == order[:3]


# ---- reverts ----------------------------------------------------------------------------------


def test_a_revert_supersedes_and_contradicts_the_commit_it_names(made, store):
    good = made.commit({"a": b"1\n"}, "2024-01-01")
    bad = made.commit({"a": b"2\n"}, "2024-01-02", message="clever")
    revert = made.commit(
        {"a": b"1\n"}, "2024-01-03", message=f'Revert "clever"\n\nThis reverts commit {bad}.\n'
    )
    again = made.commit(
        {"a": b"2\n"}, "2024-01-04", message=f"Reapply\n\nThis reverts commit {revert[:10]}.\n"
    )
    report = import_git(store, made.path)

    assert 2 == report.reverts
    found = store.what_superseded(f"commit:{bad}")
    assert [f"commit:{revert}", f"commit:{again}"] == [step.node.id for step in found.chain]
    assert "Ada <ada@example.org>" == found.chain[0].who
    assert 'Revert "clever"' == found.chain[0].why
    assert "superseded" == store.event(f"commit:{bad}").standing
    assert "stands" == store.knowledge_at("2024-01-02").event(f"commit:{bad}").standing
    assert "stands" == store.event(f"commit:{good}").standing
    assert 2 == len(store.contradictions(settled=True))


def test_a_revert_of_a_commit_that_is_not_there_is_counted(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01", message=f"This reverts commit {'0' * 40}.")

    assert (0, 1) == (import_git(store, made.path).reverts, len(store.events(type="commit")))


# ---- odd repositories -------------------------------------------------------------------------


def test_submodules_are_skipped_and_counted(made, store):
    made.commit({"a": b"1\n", "sub": (SUBMODULE, b"1" * 40)}, "2024-01-01")
    made.commit({"a": b"1\n", "sub": (SUBMODULE, b"2" * 40)}, "2024-01-02")
    made.commit({"a": b"1\n"}, "2024-01-03")
    report = import_git(store, made.path)

    assert (2, {"a"}) == (report.submodules, paths(store))


def test_a_file_that_becomes_a_submodule_ends(made, store):
    made.commit({"a": b"1\n", "sub": b"file\n"}, "2024-01-01")
    made.commit({"a": b"1\n", "sub": (SUBMODULE, b"1" * 40)}, "2024-01-02")
    import_git(store, made.path)

    assert {"a"} == paths(store)


def test_a_file_that_becomes_a_link_or_executable_has_a_new_version(made, store):
    made.commit({"run": b"x\n"}, "2024-01-01")
    made.commit({"run": (0o100755, b"x\n")}, "2024-01-02")
    made.commit({"run": (0o120000, b"x\n")}, "2024-01-03")
    import_git(store, made.path)

    assert ["100644", "100755", "120000"] == [
        version.content["mode"] for version in store.history("file:run")
    ]


def test_an_empty_commit_is_an_event_alone(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01")
    sha = made.commit({"a": b"1\n"}, "2024-01-02", message="")
    report = import_git(store, made.path)

    assert (2, 1) == (report.commits, report.versions)
    assert ("(no message)", 0) == (
        store.event(f"commit:{sha}").description,
        store.event(f"commit:{sha}").metadata["files"],
    )


def test_binary_files_have_a_size_and_no_lines(made, store):
    made.commit({"picture": b"\x89PNG\0\0", "empty": b"", "unended": b"a\nb"}, "2024-01-01")
    import_git(store, made.path)
    contents = {node.content["path"]: node.content for node in store.nodes(kind="file")}

    assert (6, None, True) == tuple(contents["picture"][name] for name in ("size", "lines", "binary"))
    assert (0, 2) == (contents["empty"]["lines"], contents["unended"]["lines"])


def test_paths_and_messages_that_are_not_utf8(made, store):
    sha = made.commit(
        {b"caf\xe9.txt": b"1\n"}, "2024-01-01", message=b"caf\xe9", author=b"Ren\xe9 <r@example.org>"
    )
    shift = made.commit(
        {b"caf\xe9.txt": b"2\n"}, "2024-01-02", message="日本".encode("shift_jis"), encoding=b"Shift_JIS"
    )
    report = import_git(store, made.path)

    assert 1 == report.paths_escaped
    assert {"caf\\xe9.txt"} == paths(store)
    assert ("café", "René") == (
        store.event(f"commit:{sha}").description,
        store.event(f"commit:{sha}").metadata["author"],
    )
    assert "日本" == store.event(f"commit:{shift}").description


def test_paths_that_look_like_other_ids(made, store):
    files = {"a": b"1\n", "a-v2": b"2\n", "src/ab": b"3\n", 'it\'s {x} "q"\n': b"4\n", "ünï": b"5\n"}
    made.commit(files, "2024-01-01")
    made.commit({**files, "a": b"6\n", "src/a": b"7\n"}, "2024-01-02")
    import_git(store, made.path)

    assert {*files, "src/a"} == paths(store)
    assert [1, 2] == [store.node(f"file:{name}").number for name in ("a-v2", "a")]


def test_a_path_deleted_and_made_again_is_one_node_with_a_gap(made, store):
    made.commit({"a": b"1\n", "b": b"1\n"}, "2024-01-01")
    made.commit({"b": b"1\n"}, "2024-02-01")
    made.commit({"a": b"2\n", "b": b"1\n"}, "2024-03-01")
    import_git(store, made.path)

    assert [(day("2024-01-01"), day("2024-02-01")), (day("2024-03-01"), None)] == [
        (version.valid_from, version.valid_to) for version in store.history("file:a")
    ]


def test_a_rename_back_keeps_the_first_continuation_and_is_counted(made, store):
    made.commit({"a": LINES}, "2024-01-01")
    made.commit({"b": LINES}, "2024-02-01")
    made.commit({"a": LINES}, "2024-03-01")
    report = import_git(store, made.path)

    assert (2, 1) == (report.renames, report.renames_unlinked)
    assert "b" == store.node("file:a").content["renamed_from"]
    assert ["file:b"] == [link.target for link in store.links_from("file:a", "continuation")]


def test_a_folder_moved_is_a_rename_of_each_file(made, store):
    files = {f"{name}.py": LINES + name.encode() for name in "abcdef"}
    made.commit(files, "2024-01-01")
    made.commit({f"src/{name}": data for name, data in files.items()}, "2024-01-02")

    assert 6 == import_git(store, made.path).renames
    assert ["file:src/c.py"] == [link.target for link in store.links_from("file:c.py", "continuation")]


def test_empty_files_are_never_a_rename(made, store):
    made.commit({"a/__init__.py": b""}, "2024-01-01")
    made.commit({"b/__init__.py": b""}, "2024-01-02")

    assert 0 == import_git(store, made.path).renames


def test_a_bare_repository(store, tmp_path):
    made = Making(tmp_path / "tool.git", bare=True)
    made.commit({"a": b"1\n"}, "2024-01-01")

    assert ("tool", 1) == ((report := import_git(store, made.path)).repository, report.commits)


def test_a_shallow_clone_starts_with_what_it_has(made, store):
    made.commit({"a": b"1\n"}, "2024-01-01")
    cut = made.commit({"a": b"2\n", "b": b"1\n"}, "2024-01-02")
    made.commit({"a": b"3\n", "b": b"1\n"}, "2024-01-03")
    made.repo.update_shallow([cut.encode()], None)
    report = import_git(store, made.path)

    assert (2, True) == (report.commits, report.shallow)
    assert [1, 2] == [version.number for version in store.history("file:a")]


def test_a_repository_without_commits(made, store):
    assert {} == counts(import_git(store, made.path))


def test_a_folder_inside_a_repository_and_a_tag(made, store):
    first = made.commit({"a": b"1\n"}, "2024-01-01")
    made.commit({"a": b"2\n"}, "2024-01-02")
    tag = Tag()
    tag.name, tag.object, tag.tagger = b"v1", (Commit, first.encode()), b"Ada <ada@example.org>"
    tag.tag_time, tag.tag_timezone, tag.message = seconds("2024-01-01"), 0, b"one"
    made.repo.object_store.add_object(tag)
    made.repo.refs[b"refs/tags/v1"] = tag.id
    (made.path / "src").mkdir()

    assert 1 == import_git(store, made.path / "src", ref="v1").commits
    assert 1 == import_git(store, made.path, ref="main").commits


def test_no_repository_and_no_ref_are_named(made, store, tmp_path):
    (tmp_path / "plain").mkdir()
    made.commit({"a": b"1\n"}, "2024-01-01")

    with pytest.raises(InvalidError, match="no git repository"):
        import_git(store, tmp_path / "plain")
    with pytest.raises(InvalidError, match="no git repository"):
        import_git(store, tmp_path / "nowhere")
    with pytest.raises(InvalidError, match="no ref 'nope'"):
        import_git(store, made.path, ref="nope")


# ---- a real one -------------------------------------------------------------------------------


@pytest.mark.rest
def test_after_the_last_commit_the_standing_files_are_the_tree_of_head(tmp_path):
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        pytest.skip("this copy of the project has no git history")
    repo = Repo(str(root))
    tree = repo[repo.head()].tree
    expected = {
        entry.path.decode(): entry.sha.decode() for entry in repo.object_store.iter_tree_contents(tree)
    }
    with graphstore.open(tmp_path / "own.gs", clock=Clock("2100-01-01")) as store:
        report = import_git(store, root)

        assert report.commits > 0
        assert expected == {node.content["path"]: node.content["blob"] for node in store.nodes(kind="file")}
        assert store.verify().ok
