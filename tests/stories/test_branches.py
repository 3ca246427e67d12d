"""Branches: lines of belief that fork from the trunk, what they share with it and what they do not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import graphstore
from graphstore import Branch, ConflictError, GraphStore, InvalidError, NotFoundError
from graphstore.store.store import Store
from tests.conftest import Clock, day
from tests.ledger.test_forgetting import files_with
from tests.support.ledger_rows import change

pytestmark = pytest.mark.served

TUESDAYS, THURSDAYS, FRIDAYS = (
    {"says": f"releases go out on {word}s"} for word in ("Tuesday", "Thursday", "Friday")
)


def held(line: GraphStore, id: str) -> list[tuple[str, str | None]]:
    """When something holds, as dates; touching periods as one."""
    found: list[tuple[str, str | None]] = []
    for row in line.history(id):
        start, stop = (at and at.date().isoformat() for at in (row.valid_from, row.valid_to))
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, stop))
    return found


@pytest.fixture
def rule(disk_store: GraphStore, clock: Clock) -> GraphStore:
    """A store that knows one rule, and a branch `try` that knows it otherwise since the next day."""
    disk_store.add_node("rule", TUESDAYS, id="release", key="release_day", valid_from="2026-01-01")
    disk_store.add_node(
        "plan", {"freeze": "Mondays"}, id="freeze", valid_from="2026-01-01", derived_from="release"
    )
    clock.move(days=1)
    disk_store.branch("try", reason="what if")
    clock.move(days=1)
    disk_store.on("try").revise("release", THURSDAYS, reason="Tuesday is meeting day")
    return disk_store


# ---------------------------------------------------------------- what a branch is


def test_what_is_told_on_a_branch_shows_nowhere_else(rule):
    rule.branch("other")

    assert THURSDAYS == rule.on("try").node("release").content
    assert TUESDAYS == rule.node("release").content
    assert TUESDAYS == rule.on("other").node("release").content


def test_what_is_told_on_the_trunk_later_shows_on_no_branch(rule):
    rule.revise("release", FRIDAYS)
    rule.add_node("fact", {"n": 1}, id="later0")

    assert THURSDAYS == rule.on("try").node("release").content
    with pytest.raises(NotFoundError):
        rule.on("try").node("later0")


def test_a_branch_answers_every_coordinate_before_its_fork_as_the_trunk_does(rule):
    before = {"valid": "2026-01-10", "tx": "2026-02-02"}

    assert rule.as_of(**before).inspect("release") == rule.on("try").as_of(**before).inspect("release")


def test_a_branch_begins_at_a_view_of_the_past(disk_store, clock):
    disk_store.add_node("rule", TUESDAYS, id="release", valid_from="2026-01-01")
    then = disk_store.as_of()
    clock.move(days=1)
    disk_store.revise("release", FRIDAYS)

    assert TUESDAYS == disk_store.branch("past", at=then).node("release").content
    assert TUESDAYS == disk_store.branch("past too", tx="2026-02-01T12:00:00Z").node("release").content
    assert FRIDAYS == disk_store.branch("present").node("release").content


def test_a_branch_has_slots_events_resting_and_cypher_of_its_own(rule, clock):
    branch = rule.on("try")
    clock.move(days=1)
    branch.add_node("rule", FRIDAYS, id="fridays", key="release_day")
    branch.record_event("error", "it broke", id="broke0")

    assert ["fridays"] == [node.id for node in branch.nodes(key="release_day")]
    assert "shaky" == branch.node("freeze").standing
    assert "stands" == rule.node("freeze").standing
    assert [{"n.id": "fridays"}] == branch.query("MATCH (n:Node {kind: 'rule'}) RETURN n.id").rows()
    assert [{"n.id": "release"}] == rule.query("MATCH (n:Node {kind: 'rule'}) RETURN n.id").rows()
    assert {"n": 5} == branch.query_tables("MATCH (v:Version) RETURN count(*) AS n").single()
    assert [] == rule.events()


def test_branches_are_listed_with_where_they_began(rule, clock):
    told = clock.now
    (found,) = rule.branches()
    [known] = {change.tx for change in rule.changes() if change.subject == "freeze"}

    assert ("try", 1, None) == (found.name, found.transactions, found.merged_at)
    assert (known, told) == (found.forked_at, found.last_tx)
    assert found == rule.on("try").info


def test_changes_say_on_which_branch_they_were_told(rule):
    assert [("add_node", None), ("add_node", None), ("revise", "try")] == [
        (change.verb, change.branch) for change in rule.on("try").changes()
    ]
    assert ["branch"] == [change.verb for change in rule.changes(since="2026-02-01T12:00:00Z")]
    assert "what if" == rule.changes()[-1].reason


def test_instants_rise_over_all_lines(disk_store):
    branch = disk_store.branch("try")
    told = [
        line.add_node("fact", {"n": number}).tx_from
        for number, line in enumerate((disk_store, branch, disk_store, branch))
    ]

    assert sorted(set(told)) == told


def test_two_lines_are_compared_by_what_they_say(rule):
    rule.revise("release", FRIDAYS)
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="only00")
    found = rule.compare("try")

    assert [("release", 2, 2)] == [(each.id, each.before.number, each.after.number) for each in found.changed]
    assert (FRIDAYS, THURSDAYS) == (found.changed[0].before.content, found.changed[0].after.content)
    assert ["only00"] == [node.id for node in found.added]
    assert found == rule.as_of().compare(branch.as_of())
    assert ["only00"] == [node.id for node in branch.as_of().compare(rule.as_of()).removed]


def test_two_branches_are_compared(rule):
    other = rule.branch("other")
    other.revise("release", THURSDAYS)

    assert not rule.on("try").compare(other)
    other.revise("release", FRIDAYS)
    assert ["release"] == [each.id for each in rule.on("try").as_of().compare(other.as_of()).changed]


# ---------------------------------------------------------------- names and handles


def test_a_name_is_used_once_until_its_branch_is_deleted(rule):
    with pytest.raises(ConflictError, match="on\\('try'\\)"):
        rule.branch("try")
    held = rule.on("try")
    rule.delete_branch("try")

    with pytest.raises(NotFoundError):
        rule.on("try")
    with pytest.raises(InvalidError, match="deleted"):
        held.nodes()
    assert TUESDAYS == rule.branch("try").node("release").content
    with pytest.raises(InvalidError, match="deleted"):
        held.revise("release", FRIDAYS)


def test_an_unknown_branch_is_an_error_that_names_the_nearest(rule):
    for verb in (rule.on, rule.delete_branch, rule.compare):
        with pytest.raises(NotFoundError, match="'try'"):
            verb("tri")


@pytest.mark.parametrize("name", ["", " ", None, 7, "a\nb"])
def test_a_name_is_printable_text(store, name):
    with pytest.raises(InvalidError):
        store.branch(name)
    assert [] == store.branches()


def test_a_branch_begins_at_what_the_trunk_knew(rule):
    with pytest.raises(InvalidError, match="trunk"):
        rule.branch("bad", at=rule.on("try").as_of())
    with pytest.raises(InvalidError, match="not come yet"):
        rule.branch("bad", tx="2027-01-01")
    with pytest.raises(InvalidError, match="Give one of them"):
        rule.branch("bad", at=rule.as_of(), tx="2026-02-01")


def test_what_concerns_the_whole_store_is_refused_on_a_branch(rule):
    branch = rule.on("try")
    for act in (
        lambda: branch.erase("release", reason="no"),
        lambda: branch.evict(ids=["release"]),
        lambda: branch.set_retention(days=3),
        lambda: branch.merge("deeper"),
        lambda: branch.delete_branch("try"),
    ):
        with pytest.raises(InvalidError, match="on the store itself"):
            act()


def test_a_branch_inherits_no_verb_that_it_refuses(rule):
    refused = ("merge", "delete_branch", "evict", "erase", "set_retention")

    assert isinstance(rule.on("try"), Store) and isinstance(rule, Store)
    assert not issubclass(Branch, GraphStore)
    assert [] == [name for name in refused if hasattr(Store, name)]
    for name in refused:
        with pytest.raises(
            InvalidError, match=rf"^{name}\(\) on branch 'try'\. .*: call it on the store itself\.$"
        ):
            getattr(rule.on("try"), name)()


def test_a_handle_stands_for_its_name(rule):
    with rule.branch("by handle") as branch:
        branch.revise("release", FRIDAYS)
    assert ["release"] == list(rule.merge(branch).changed)
    assert not rule.compare(rule.on("by handle"))

    rule.delete_branch(branch)
    rule.branch("by handle").revise("release", THURSDAYS)
    for verb in (rule.merge, rule.delete_branch):
        with pytest.raises(NotFoundError, match="deleted"):
            verb(branch)
    with graphstore.open(":memory:") as other, pytest.raises(InvalidError, match="another store"):
        other.merge(rule.on("by handle"))
    assert FRIDAYS == rule.node("release").content


def test_a_branch_that_was_closed_is_given_again(rule):
    branch, never = rule.on("try"), rule.branch("never asked")
    assert branch is rule.on("try")
    branch.close()
    never.close()

    with pytest.raises(InvalidError, match="closed"):
        never.nodes()
    with pytest.raises(InvalidError, match="closed"):
        branch.node("release")
    assert THURSDAYS == rule.on("try").node("release").content


def test_closing_the_store_closes_its_branches(rule):
    branch, view = rule.on("try"), rule.on("try").as_of()
    rule.close()

    for reader in (branch, view):
        with pytest.raises(InvalidError, match="closed"):
            reader.node("release")


# ---------------------------------------------------------------- transactions


def test_one_transaction_at_a_time_over_all_lines(rule):
    branch = rule.on("try")
    with (
        rule.transaction(),
        pytest.raises(InvalidError, match="branch 'try' inside transaction\\(\\) of the trunk"),
    ):
        branch.add_node("fact", {"n": 1})
    with branch.transaction():
        branch.add_node("fact", {"n": 1}, id="inside")
        for act in (
            lambda: rule.add_node("fact", {"n": 1}),
            lambda: rule.branch("more"),
            lambda: rule.erase("freeze", reason="no"),
            lambda: rule.close(),
        ):
            with pytest.raises(InvalidError, match="of branch 'try'"):
                act()
    assert {"n": 1} == branch.node("inside").content
    assert ["try"] == [each.name for each in rule.branches()]


def test_a_block_on_a_branch_is_all_or_nothing(rule):
    branch = rule.on("try")
    with pytest.raises(ZeroDivisionError), branch.transaction():
        branch.add_node("fact", {"n": 1}, id="gone00")
        raise ZeroDivisionError
    with pytest.raises(NotFoundError):
        branch.node("gone00")
    assert rule.verify().ok


def test_an_interrupted_verb_on_a_branch_leaves_every_line_as_it_was(rule):
    branch = rule.on("try")
    with pytest.raises(KeyboardInterrupt), branch.transaction():
        branch.add_node("fact", {"n": 1}, id="gone00")
        raise KeyboardInterrupt

    with pytest.raises(NotFoundError):
        branch.node("gone00")
    assert (THURSDAYS, TUESDAYS) == (branch.node("release").content, rule.node("release").content)
    assert rule.verify().ok


def test_a_branch_is_read_while_the_trunk_is_in_a_transaction(rule):
    rule.on("try").close()
    with rule.transaction():
        rule.add_node("rule", FRIDAYS, id="fridays", supersedes=["release"])
        assert THURSDAYS == rule.on("try").node("release").content
    assert rule.verify().ok


def test_a_bulk_load_and_a_large_transaction_go_to_the_branch(rule):
    branch = rule.on("try")
    loaded = branch.bulk_load(versions=[{"node_id": f"n{n}", "content": {"n": n}} for n in range(2500)])

    assert (2500, 2502, 2) == (loaded["versions"], len(branch.nodes()), len(rule.nodes()))
    assert rule.verify().ok


def test_threads_write_to_the_trunk_and_to_branches(disk_store):
    lines = [disk_store, *(disk_store.branch(f"branch {n}") for n in range(3))]

    def work(line: GraphStore) -> None:
        for number in range(25):
            line.add_node("fact", {"n": number})

    threads = [threading.Thread(target=work, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [25] * 4 == [len(line.nodes()) for line in lines]
    assert disk_store.verify().ok


# ---------------------------------------------------------------- files


def test_a_store_opened_again_has_its_branches(rule, clock):
    path, told = rule.path, rule.branches()
    versions = rule.on("try").versions("release")
    rule.close()

    with graphstore.open(path, clock=clock) as again:
        assert told == again.branches()
        assert versions == again.on("try").versions("release")
        assert TUESDAYS == again.node("release").content
        again.on("try").revise("release", FRIDAYS)
        assert again.verify().ok


def test_what_a_branch_adds_under_an_erased_name_stands_on_a_branch_of_it(rule):
    rule.add_node("fact", {"says": "trunk"}, id="again")
    rule.erase("again", reason="not ours")
    rule.on("try").add_node("fact", {"says": "branch"}, id="again")
    deeper = rule.on("try").branch("deeper")
    rule.erase("release", reason="not ours")

    for line in (rule.on("try"), deeper, rule.on("try"), deeper):
        assert {"says": "branch"} == line.node("again").content
        with pytest.raises(NotFoundError, match="erased"):
            line.node("release")
        line.stats()  # which no rows answer: from now on the index does


def test_a_reader_follows_branches(rule, clock):
    with graphstore.open(rule.path, read_only=True, clock=clock) as reader:
        branch = reader.branch("try")
        assert THURSDAYS == branch.node("release").content
        with pytest.raises(InvalidError, match="read only"):
            branch.revise("release", FRIDAYS)
        for line in (reader, branch):
            with pytest.raises(NotFoundError) as raised:
                line.branch("new")
            assert (
                "no branch 'new'. This store is open read only: branch() makes none. Open it with read_only=False to make one, "
                "or call refresh() where another process has made it."
            ) == str(raised.value)
        with pytest.raises(
            NotFoundError, match=r"no branch 'tri'\. Nearest: 'try'\. This store is open read only"
        ):
            reader.branch("tri")
        assert branch is branch.branch("try") is reader.branch("try")
        rule.on("try").revise("release", FRIDAYS)
        rule.branch("new")
        assert FRIDAYS == branch.node("release").content
        assert TUESDAYS == reader.branch("new").node("release").content
        assert [{"n": 3}] == branch.query_tables(
            "MATCH (v:Version {node_id: 'release'}) RETURN count(*) AS n"
        ).rows()
        rule.delete_branch("try")
        branch.refresh()
        with pytest.raises(InvalidError, match="deleted"):
            branch.nodes()


def test_a_dump_holds_the_branches(rule, tmp_path):
    rule.export(tmp_path / "one.jsonl")
    with graphstore.restore(tmp_path / "one.jsonl", tmp_path / "again.gs") as again:
        assert rule.on("try").versions("release") == again.on("try").versions("release")
        again.on("try").export(tmp_path / "two.jsonl")

    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_damage_in_a_line_of_a_branch_is_found(rule):
    path = rule.path
    rule.close()
    change(path, "UPDATE body SET data = CAST(replace(CAST(data AS TEXT), 'Thursday', 'Sunday__') AS BLOB)")

    assert not graphstore.verify(path).ok


def test_branches_of_a_store_in_memory(store):
    store.add_node("fact", {"n": 1}, id="one000")
    branch = store.branch("try")
    branch.revise("one000", {"n": 2})
    store.erase("one000", reason="no")
    branch.add_node("fact", {"n": 3}, id="three0")
    store.add_node("fact", {"n": 4}, id="four00")
    store.evict(ids=["four00"], keep_audit=False)

    assert "erased" == branch.inspect("one000").node.standing
    assert {"n": 3} == branch.node("three0").content
    assert store.verify().ok


# ---------------------------------------------------------------- forgetting reaches every branch


def forgotten(store: GraphStore, *texts: str) -> list[Path]:
    return [file for text in texts for file in files_with(store.path, text)]


def test_erasing_reaches_what_branches_say(rule):
    branch, view = rule.on("try"), rule.on("try").as_of()
    branch.link("freeze", "contradicts", "release", reason="SECRET of the link")
    branch.query_tables("MATCH (v:Version) RETURN count(*)")
    rule.erase("release", reason="asked for")

    assert [] == forgotten(rule, "Tuesday", "Thursday", "SECRET")
    assert ["erased"] * 3 == [line.inspect("release").node.standing for line in (rule, branch, view)]
    assert [{"v.content": "{}"}] == branch.query_tables(
        "MATCH (v:Version {node_id: 'release'}) RETURN DISTINCT v.content"
    ).rows()
    with pytest.raises(ConflictError, match="erased"):
        branch.revise("release", FRIDAYS)
    assert rule.verify().ok


@pytest.mark.parametrize("deleted", [False, True])
def test_what_only_a_branch_knows_is_erased_from_the_trunk(rule, clock, deleted):
    path = rule.path
    rule.on("try").add_node("fact", {"says": "SECRET"}, id="only00")
    if deleted:
        rule.delete_branch("try")
    rule.erase("only00", reason="asked for")
    assert [] == forgotten(rule, "SECRET")
    rule.close()

    with graphstore.open(path, clock=clock) as again:
        if not deleted:
            assert "erased" == again.on("try").inspect("only00").node.standing
        with pytest.raises(NotFoundError):
            again.inspect("only00")
        assert again.verify().ok


def test_old_events_of_a_branch_are_evicted(rule, clock):
    rule.on("try").record_event("deploy", "SECRET deploy", id="deploy")
    rule.record_event("deploy", "another", id="trunk0")
    clock.move(days=10)

    assert ["trunk0", "deploy"] == rule.evict(before=clock.now)
    assert [] == forgotten(rule, "SECRET")
    assert "evicted" == rule.on("try").inspect("deploy").node.standing
    assert rule.verify().ok


def test_a_follower_shows_what_was_erased_on_a_branch_as_forgotten(rule):
    rule.on("try").add_node("fact", {"says": "SECRET"}, id="only00")
    with graphstore.open(rule.path, read_only=True) as reader:
        assert {"says": "SECRET"} == reader.on("try").node("only00").content
        rule.erase("only00", reason="asked for")
        reader.refresh()
        assert "erased" == reader.on("try").inspect("only00").node.standing
        assert reader.verify().ok


def test_evicted_without_a_trace_the_branches_stay_as_they_were(rule, clock):
    early = rule.branch("early", tx="2026-02-01T00:00:00Z")
    rule.add_node("fact", {"n": 1}, id="one000")
    branch = rule.on("try")
    branch.add_node("fact", {"n": 2}, id="two000", supersedes=["release"])
    branch.add_node("fact", {"says": "SECRET"}, id="only00")
    rule.branch("over").add_node("fact", {"n": "OVER"}, id="over00")
    rule.delete_branch("over")
    kept = [line.versions("release") for line in (rule, branch, early)]
    rule.evict(ids=["freeze", "only00"], keep_audit=False)

    assert [] == forgotten(rule, "SECRET", "only00", "freeze", "OVER")
    assert kept == [line.versions("release") for line in (rule, branch, early)]
    assert ["two000"] == [node.id for node in branch.nodes()]
    for line in (rule, branch, early):
        line.add_node("fact", {"n": 5}, id="after0")
    assert ["try", "early"] == [each.name for each in rule.branches()]
    assert rule.verify().ok
    path = rule.path
    rule.close()
    with graphstore.open(path, clock=clock) as again:
        assert ["two000", "after0"] == [node.id for node in again.on("try").nodes()]
        assert again.verify().ok


def test_a_branch_keeps_the_settings_of_its_own(rule):
    branch = rule.on("try")
    rule.set_trust({"user": 2})
    branch.set_trust({"agent": 1})
    branch.define_kind("feeds")
    rule.set_retention(days=1000)

    assert ({"user": 2}, {"agent": 1}) == (rule.trust, branch.trust)
    assert 1000 == branch.retention["days"]
    assert "feeds" not in rule.vocabulary.kinds
    assert branch.sweep().evicted == ()


# ---------------------------------------------------------------- merging


def says(store: GraphStore, id: str, **at: str) -> object:
    return store.as_of(**at).node(id).content


def test_what_only_the_branch_changed_comes_over(rule, clock):
    clock.move(days=1)
    before = clock.now
    rule.add_node("fact", {"n": 1}, id="trunk0")
    branch = rule.on("try")
    branch.add_node("fact", {"n": 2}, id="aside0", tags=["new"], source="user:ana")
    branch.retract("freeze", reason="nobody needs it")
    clock.move(days=1)
    done = rule.merge("try", reason="it worked")

    assert done.merged
    assert (("aside0",), ("release",), ("freeze",)) == (done.added, done.changed, done.ended)
    assert THURSDAYS == rule.node("release").content
    assert (("new",), "user:ana") == (rule.node("aside0").tags, rule.node("aside0").source)
    assert "retracted" == rule.inspect("freeze").node.standing
    assert {"n": 1} == rule.node("trunk0").content
    assert TUESDAYS == says(rule, "release", tx=before.isoformat())
    told = {(change.verb, change.subject): change.reason for change in rule.changes(since=before)}
    assert "it worked" == told["merge", "try"]
    assert "nobody needs it" == told["retract", "freeze"]
    assert "Tuesday is meeting day" == told["revise", "release"]
    assert "it worked" == told["add_node", "aside0"]  # said without a reason of its own
    assert rule.verify().ok


def test_a_merge_leaves_both_lines_alike_and_a_second_one_has_nothing_to_do(rule):
    branch = rule.on("try")
    branch.add_node("rule", FRIDAYS, id="fridays", key="release_day")
    branch.record_event("error", "it broke", id="broke0", occurred_at="2026-01-05")
    branch.record_event("error", "it broke", occurred_at="2026-01-03")
    branch.record_event("fix", "mended", id="mended", occurred_at="2026-01-07", related_to="broke0")
    branch.define_kind("feeds", inverse="fed_by")
    branch.link("mended", "feeds", "fridays", reason="so it was", strength=4, metadata={"n": 1})
    branch.confirm("freeze", reason="looked")
    branch.set_trust({"user": 3})
    assert rule.merge("try").merged

    assert not rule.compare("try")
    for id in ("release", "fridays", "broke0", "mended", "freeze"):
        one, other = rule.inspect(id), branch.inspect(id)
        assert one.confirmations == other.confirmations
        assert (one.node.standing, {link.id for link in one.links}) == (
            other.node.standing,
            {link.id for link in other.links},
        )
    assert (2, "resolved") == (rule.event("broke0").count, rule.event("broke0").status)
    assert (
        str(branch.what_superseded("release")).split("recorded")[0]
        == str(rule.what_superseded("release")).split("recorded")[0]
    )
    assert {"user": 3} == rule.trust
    again = rule.merge("try")
    assert (True, None) == (again.merged, again.tx)
    assert rule.verify().ok


def test_a_supersession_that_came_over_gives_back_what_it_took_where_the_trunk_had_nothing(rule):
    """The branch learned that it held earlier, and then that it was replaced."""
    rule.add_node("fact", {"says": "weekly"}, id="rhythm", valid_from="2026-01-06")
    branch = rule.branch("earlier")
    branch.revise("rhythm", {"says": "each week"}, valid_from="2026-01-02")
    branch.add_node("fact", {"says": "daily"}, id="new rhythm", valid_from="2026-01-04")
    (link,) = branch.supersede("rhythm", by="new rhythm")
    assert rule.merge("earlier").merged
    assert [("2026-01-02", "2026-01-04")] == held(rule, "rhythm") == held(branch, "rhythm")

    for line in (rule, branch):
        line.unlink(link.id)
        assert [("2026-01-02", None)] == held(line, "rhythm")
    assert not rule.compare("earlier")
    assert rule.verify().ok


def test_a_conflict_of_what_reads_the_same_in_short_is_told_in_full(rule):
    rule.revise("release", FRIDAYS, text="on a weekday", source="user")
    rule.on("try").revise("release", FRIDAYS, text="on a weekday", tags=["late"])
    (conflict,) = rule.merge("try").conflicts

    assert "on a weekday, the branch on a weekday" not in str(conflict)
    assert "'source': 'user'" in str(conflict)
    assert "'tags': ['late']" in str(conflict)


def test_what_both_changed_is_a_conflict_and_nothing_is_written(rule):
    rule.revise("release", FRIDAYS)
    rule.on("try").add_node("fact", {"n": 1}, id="aside0")
    told = rule.stats()["last_tx"]
    found = rule.merge("try")

    assert not found.merged
    (conflict,) = found.conflicts
    assert ("release", "node", None) == (conflict.id, conflict.what, conflict.decision)
    assert [TUESDAYS, FRIDAYS, THURSDAYS] == [
        thing.content for thing in (conflict.base, conflict.ours, conflict.theirs)
    ]
    assert day("2026-01-01") == conflict.valid_from
    assert (
        "node release from 2026-01-01 was releases go out on Tuesdays; the trunk says releases go out on Fridays, the branch "
        "releases go out on Thursdays."
    ) == str(conflict)
    assert told == rule.stats()["last_tx"]
    with pytest.raises(NotFoundError):
        rule.node("aside0")


@pytest.mark.parametrize("how", [{"release": "branch"}, "branch", lambda conflict: "branch"])
def test_a_conflict_decided_for_the_branch(rule, how):
    rule.revise("release", FRIDAYS)
    done = rule.merge("try", decide=how, reason="asked Ana")

    assert THURSDAYS == rule.node("release").content
    assert "branch" == done.conflicts[0].decision
    (decided,) = [change for change in rule.changes() if change.verb == "decide"]
    assert "of the trunk and branch 'try' the branch is followed" in decided.reason
    assert [1, 2, 3] == [version.number for version in rule.versions("release")]


def test_a_merge_with_a_conflict_says_what_was_done_and_why(rule):
    rule.on("try").amend("release", {"by": "Ana"})
    rule.on("try").confirm("freeze", reason="looked")
    rule.revise("release", FRIDAYS)
    before = rule.stats()["last_tx"]
    rule.merge("try", decide="branch", reason="asked Ana")

    told = [(change.verb, change.subject, change.reason) for change in rule.changes(since=before)]
    assert ("amend", "release", "asked Ana") in told
    assert ("confirm", "freeze", "looked") in told
    assert THURSDAYS | {"by": "Ana"} == rule.node("release").content
    assert rule.verify().ok


def test_a_conflict_decided_for_the_trunk_is_none_the_next_time(rule):
    rule.revise("release", FRIDAYS)
    assert rule.merge("try", decide={"release": "trunk"}).merged
    assert FRIDAYS == rule.node("release").content
    rule.on("try").add_node("fact", {"n": 1}, id="aside0")
    done = rule.merge("try")

    assert ((), ("aside0",)) == (done.conflicts, done.added)
    assert FRIDAYS == rule.node("release").content


def test_a_wrong_decision_is_an_error_that_names_the_choices(rule):
    rule.revise("release", FRIDAYS)
    with pytest.raises(InvalidError, match="branch, trunk"):
        rule.merge("try", decide={"release": "mine"})
    with pytest.raises(InvalidError, match=r"branch, trunk|decide"):
        rule.merge("try", decide=lambda _: 7)
    assert not rule.merge("try").merged


def test_a_decision_on_what_is_in_no_conflict_is_refused(rule):
    rule.revise("release", FRIDAYS)
    before = rule.stats()["transactions"]

    with pytest.raises(
        InvalidError, match=r"decide names 'relaese', which is in no conflict\. In conflict: release\."
    ):
        rule.merge("try", decide={"release": "trunk", "relaese": "trunk"})

    assert before == rule.stats()["transactions"]


def test_conflicts_are_decided_instant_by_instant_of_valid_time(rule):
    branch = rule.branch("months")
    branch.revise("release", THURSDAYS, valid_from="2026-03-01")
    rule.revise("release", FRIDAYS, valid_from="2026-02-01", valid_to="2026-04-01")
    (conflict,) = rule.merge("months").conflicts
    assert (day("2026-03-01"), day("2026-04-01")) == (conflict.valid_from, conflict.valid_to)
    assert rule.merge("months", decide="trunk").merged

    assert [TUESDAYS, FRIDAYS, FRIDAYS, THURSDAYS] == [
        says(rule, "release", valid=at) for at in ("2026-01-15", "2026-02-15", "2026-03-15", "2026-04-15")
    ]


def test_the_same_change_on_both_sides_is_no_conflict(rule):
    rule.revise("release", THURSDAYS)
    done = rule.merge("try")

    assert (True, ()) == (done.merged, done.changed)
    assert 2 == rule.node("release").number


def test_version_numbers_of_a_branch_stay_where_they_are_free_and_are_aliases_where_not(rule):
    branch = rule.on("try")
    branch.revise("release", FRIDAYS)
    branch.revise("freeze", {"freeze": "never"})
    rule.revise("release", {"says": "no releases"})
    rule.revise("release", {"says": "some"})
    rule.revise("release", {"says": "more"})
    rule.merge("try", decide="branch")

    assert 2 == rule.node("freeze").number
    assert 5 == rule.node("release").number
    assert FRIDAYS == rule.node("release-v3@try").content
    assert {"says": "some"} == rule.node("release-v3").content
    with pytest.raises(NotFoundError):
        rule.node("release-v2@try")
    with pytest.raises(NotFoundError):
        rule.as_of(tx=branch.info.last_tx).node("release-v3@try")


def test_a_merged_branch_lives_on_and_a_version_that_came_over_is_the_same_one_later(rule, clock):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="aside0", valid_from="2026-01-01", valid_to="2026-02-01")
    rule.merge("try")
    clock.move(days=1)
    branch.add_node("fact", {"n": 2}, id="newer0", supersedes=["aside0"], valid_from="2026-01-10")
    rule.merge("try")
    branch.unlink(branch.what_superseded("aside0").chain[0].link.id)
    done = rule.merge("try")

    assert {"n": 1} == says(rule, "aside0", valid="2026-01-20")
    assert [1] * 3 == [version.number for version in rule.versions("aside0")]
    assert ("aside0",) == done.changed
    assert not rule.compare("try")


def test_a_supersession_that_came_over_gives_back_what_it_took(rule):
    branch = rule.on("try")
    branch.add_node("rule", FRIDAYS, id="fridays", supersedes=["release"], valid_from="2026-02-01")
    rule.merge("try")
    assert ["fridays"] == [node.id for node in rule.what_superseded("release").current]
    assert "superseded" == rule.inspect("release").node.standing
    rule.unlink(rule.what_superseded("release").chain[0].link.id)

    assert THURSDAYS == says(rule, "release", valid="2026-03-01")
    assert rule.verify().ok


def test_taken_back_here_and_described_anew_there(rule):
    rule.retract("release", reason="wrong")
    (conflict,) = rule.merge("try").conflicts
    assert (None, THURSDAYS) == (conflict.ours, conflict.theirs.content)
    rule.merge("try", decide="branch")

    assert THURSDAYS == rule.node("release").content


def test_superseded_there_and_described_anew_here_decided_for_the_trunk_it_stands(rule):
    branch = rule.branch("late")
    branch.add_node("rule", FRIDAYS, id="fridays", supersedes=["release"])
    rule.revise("release", THURSDAYS)
    (conflict,) = rule.merge("late").conflicts
    assert "release" == conflict.id
    rule.merge("late", decide="trunk")

    assert "stands" == rule.node("release").standing
    assert ["revised"] == [step.how for step in rule.what_superseded("release").chain]
    assert FRIDAYS == rule.node("fridays").content


@pytest.mark.parametrize("side", ["trunk", "branch"])
def test_two_values_of_one_slot(rule, side, clock):
    branch = rule.branch("late")
    clock.move(days=1)
    branch.add_node("rule", FRIDAYS, id="fridays", key="release_day", valid_from="2026-02-01")
    rule.add_node("rule", THURSDAYS, id="thursday", key="release_day", valid_from="2026-02-01")
    (conflict,) = rule.merge("late").conflicts
    assert ("fridays", "slot", "thursday") == (conflict.id, conflict.what, conflict.other)
    assert "would hold the slot that thursday holds" in str(conflict)
    clock.move(days=1)
    done = rule.merge("late", decide={"fridays": side})

    assert [{"trunk": "thursday", "branch": "fridays"}[side]] == [
        node.id for node in rule.nodes(key="release_day")
    ]
    if side == "trunk":
        assert done.left_out
        with pytest.raises(NotFoundError):
            rule.inspect("fridays")
    else:
        assert {"fridays", "thursday"} >= {node.id for node in rule.what_superseded("release").current}
        assert "superseded" == rule.inspect("thursday").node.standing
    assert rule.verify().ok


def test_one_id_for_two_things(rule):
    branch = rule.branch("late")
    branch.add_node("fact", {"n": 1}, id="same00")
    branch.record_event("error", "it broke", id="event0")
    branch.link("same00", "derived_from", "release")
    rule.add_node("plan", {"n": 1}, id="same00")
    rule.add_node("plan", {"n": 1}, id="event0")
    found = rule.merge("late")
    assert [("same00", "identity", ("trunk",)), ("event0", "identity", ("trunk",))] == [
        (each.id, each.what, each.choices) for each in found.conflicts
    ]
    assert not rule.merge("late", decide="branch").merged
    rule.merge("late", decide="trunk")

    assert "plan" == rule.node("same00").kind


def test_the_same_link_said_with_other_attributes(rule):
    branch = rule.branch("late")
    branch.link("freeze", "caused_by", "release", reason="theirs", valid_from="2026-01-01")
    rule.link("freeze", "caused_by", "release", reason="ours", valid_from="2026-01-15")
    (conflict,) = rule.merge("late").conflicts
    assert ("link", "ours", "theirs") == (conflict.what, conflict.ours.reason, conflict.theirs.reason)
    rule.merge("late", decide="branch")

    for at in ("2026-01-02", "2026-01-20"):
        assert ["theirs"] == [link.reason for link in rule.as_of(valid=at).links_from("freeze", "caused_by")]


def test_a_supersession_that_would_close_a_cycle(rule):
    rule.add_node("fact", {"n": 1}, id="one000", valid_from="2026-01-01")
    rule.add_node("fact", {"n": 2}, id="two000", valid_from="2026-01-01")
    branch = rule.branch("late")
    branch.supersede("one000", by="two000")
    rule.supersede("two000", by="one000")
    (conflict,) = rule.merge("late").conflicts
    assert ("cycle", ("trunk",)) == (conflict.what, conflict.choices)
    assert rule.merge("late", decide={conflict.id: "trunk"}).merged

    assert ["one000"] == [node.id for node in rule.what_superseded("two000").current]
    assert {"n": 1} == rule.node("one000").content
    assert rule.verify().ok


def test_a_link_to_what_was_forgotten_on_a_branch_is_left_out(rule):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="secret")
    branch.record_event("deploy", "shipped", id="shipped")
    rule.erase("secret", reason="asked for")
    rule.evict(ids=["shipped"])
    branch.add_node("fact", {"n": 2}, id="about")
    links = [branch.link("about", "related_to", id).id for id in ("secret", "shipped")]

    assert links == list(rule.merge("try").left_out)
    for id in ("secret", "shipped"):
        with pytest.raises(NotFoundError):
            rule.inspect(id)
    assert [] == rule.links_from("about")


def test_what_was_forgotten_on_the_trunk_does_not_come_back(rule):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="other0", derived_from="release")
    rule.erase("release", reason="asked for")
    done = rule.merge("try")

    assert (("other0",), ()) == (done.added, done.conflicts)
    assert "erased" == rule.inspect("release").node.standing
    assert "erased" == rule.links_from("other0")[0].target_standing


def test_an_event_taken_back_there_that_happened_again_here(rule):
    rule.record_event("error", "it broke", id="broke0", occurred_at="2026-01-05")
    branch = rule.branch("late")
    branch.retract("broke0", reason="no error")
    rule.record_event("error", "it broke", occurred_at="2026-01-06")
    (conflict,) = rule.merge("late").conflicts
    assert ("event", 2) == (conflict.what, conflict.ours.count)
    rule.merge("late", decide="branch")

    assert "retracted" == rule.inspect("broke0").node.standing


def test_occurrences_of_both_sides_count(rule):
    rule.record_event("error", "it broke", id="broke0", occurred_at="2026-01-05")
    branch = rule.branch("late")
    for line, at in ((branch, "2026-01-03"), (branch, "2026-01-07"), (rule, "2026-01-04")):
        line.record_event("error", "it broke", occurred_at=at)
    rule.merge("late")
    rule.merge("late")

    assert (4, day("2026-01-03")) == (rule.event("broke0").count, rule.event("broke0").first_seen)
    assert rule.verify().ok


def test_a_merge_is_in_the_journal_like_all_else(rule, clock):
    rule.revise("release", FRIDAYS)
    rule.on("try").revise("freeze", {"freeze": "never"})
    rule.merge("try", decide="branch")
    path, told, versions = rule.path, rule.branches(), rule.versions("release")
    assert told[0].merged_at == rule.stats()["last_tx"]
    rule.close()

    with graphstore.open(path, clock=clock) as again:
        assert told == again.branches()
        assert versions == again.versions("release")
        assert THURSDAYS == again.node("release-v2@try").content
        assert again.merge("try").tx is None
        again.evict(ids=["freeze"], keep_audit=False)
        assert [] == files_with(path, '"freeze"')
        assert THURSDAYS == again.node("release-v2@try").content
        assert again.verify().ok


def test_a_bare_end_of_a_link_comes_with_what_was_said_of_it(rule):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="brief0", valid_from="2026-01-01")
    branch.add_node("fact", {"n": 2}, id="after0", valid_from="2026-01-01", supersedes=["brief0"])
    rule.merge("try")

    assert ["after0"] == [node.id for node in rule.what_superseded("brief0").current]
    assert "superseded" == rule.inspect("brief0").node.standing
    assert rule.verify().ok


def test_a_merge_of_a_thousand_changes_is_one_transaction(rule):
    branch = rule.on("try")
    branch.bulk_load(versions=[{"node_id": f"n{n:04}", "content": {"n": n}} for n in range(2000)])
    done = rule.merge("try")

    assert 2000 == len(done.added)
    assert {done.tx} == {rule.node(f"n{n:04}").tx_from for n in range(0, 2000, 100)}
    assert not rule.compare("try")
    assert rule.verify().ok


# ---------------------------------------------------------------- taking over what the trunk has, branches of branches


def test_a_branch_takes_over_what_the_trunk_has(rule, clock):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="own", valid_from="2026-01-01")
    rule.add_node("fact", {"n": 2}, id="late", valid_from="2026-01-01")
    rule.revise("freeze", {"freeze": "on Sundays"})
    rule.retract("late", valid_from="2026-02-01", reason="only in January")
    clock.move(hours=1)
    done = branch.pull()

    assert (("late",), ("freeze",)) == (done.added, done.changed)
    assert {"freeze": "on Sundays"} == branch.node("freeze").content
    assert "retracted" == branch.as_of(valid="2026-02-05").inspect("late").node.standing
    assert "only in January" in [one.reason for one in branch.operations("late")]
    assert branch.pull().tx is None
    rule.merge("try")
    assert {"n": 1} == rule.node("own").content
    assert (2, "on Sundays") == (rule.node("freeze").number, rule.node("freeze").content["freeze"])
    assert rule.verify().ok


def test_what_came_from_the_trunk_does_not_come_back_to_it(rule):
    branch = rule.on("try")
    rule.add_node("fact", {}, id="resting", derived_from="freeze", valid_from="2026-01-01")
    rule.revise("freeze", {"freeze": "on Sundays"})
    rule.confirm("resting", reason="so too")
    branch.pull()
    branch.add_node("fact", {}, id="own")
    before = rule.versions("freeze"), rule.operations("freeze"), rule.operations("resting")
    rule.merge("try")

    assert before == (rule.versions("freeze"), rule.operations("freeze"), rule.operations("resting"))


def test_different_changes_are_a_conflict_of_the_pull(rule):
    branch = rule.on("try")
    branch.revise("release", THURSDAYS, valid_from="2026-02-01")
    rule.revise("release", FRIDAYS, valid_from="2026-02-01")
    (conflict,) = branch.pull().conflicts

    assert (THURSDAYS, FRIDAYS) == (conflict.ours.content, conflict.theirs.content)
    (merged,) = rule.merge("try").conflicts
    assert ("branch", "trunk") == (conflict.into, merged.into)
    trunk, line = conflict.theirs.content["says"], conflict.ours.content["says"]
    assert all(f"the trunk says {trunk}, the branch {line}" in str(each) for each in (conflict, merged))
    branch.pull(decide="trunk")
    assert FRIDAYS == branch.as_of(valid="2026-03-01").node("release").content


def test_a_branch_of_a_branch_has_what_that_has_and_comes_to_the_trunk_with_it(rule, clock):
    branch = rule.on("try")
    branch.add_node("fact", {"n": 1}, id="first", valid_from="2026-01-01")
    deeper = branch.branch("deeper")
    deeper.retract("first", reason="it was wrong")
    deeper.add_node("fact", {"n": 2}, id="second", valid_from="2026-01-01")
    branch.add_node("fact", {"n": 3}, id="third", valid_from="2026-01-01")
    path = rule.path

    assert "stands" == branch.node("first").standing
    assert (["first", "third"], ["second"]) == tuple(
        [node.id for node in each] for each in (deeper.compare(branch).added, branch.compare(deeper).added)
    )
    with pytest.raises(ConflictError, match="deeper"):
        rule.delete_branch("try")
    rule.merge("deeper")
    assert ["second"] == [node.id for node in rule.nodes(kind="fact")]
    assert () == rule.merge("try").conflicts
    assert ["second", "third"] == [node.id for node in rule.nodes(kind="fact")]
    told = [sorted(node.id for node in line.nodes()) for line in (branch, deeper)]
    assert rule.verify().ok
    rule.close()
    with graphstore.open(path, clock=clock) as again:
        assert told == [sorted(node.id for node in again.on(name).nodes()) for name in ("try", "deeper")]
        assert again.verify().ok


# ---------------------------------------------------------------- trust, and who said it


def test_a_merge_closes_nothing_that_a_more_trusted_source_said(rule):
    rule.set_trust({"user": 3, "agent": 1})
    branch = rule.on("try")
    branch.revise("freeze", {"freeze": "never"}, source="agent:one")
    rule.revise("freeze", {"freeze": "on Sundays"}, source="user:ana")
    before = rule.versions("freeze")
    with pytest.raises(ConflictError, match=r"'agent:one' \(trust 1\).*'user:ana'.*trust 3"):
        rule.merge("try", decide="branch")

    assert before == rule.versions("freeze")
    assert rule.merge("try", decide="trunk").merged


def test_ranks_of_a_branch_open_no_way_around_those_of_the_trunk(rule):
    rule.add_node("fact", {"n": 1}, id="sure", source="user:ana", valid_from="2026-01-01")
    rule.set_trust({"user": 3})
    branch = rule.branch("bold")
    branch.set_trust({})
    branch.retract("sure", reason="I know better")
    with pytest.raises(ConflictError, match="sure"):
        rule.merge("bold", decide="trunk")

    assert "stands" == rule.node("sure").standing


def test_what_was_decided_for_the_branch_has_its_authors_and_shakes_what_rests_on_it(rule, clock):
    branch = rule.on("try")
    rule.add_node("fact", {}, id="resting", derived_from="freeze", valid_from="2026-01-01")
    with branch.transaction(author="bo"):
        branch.revise("freeze", {"freeze": "never"}, reason="asked")
    rule.revise("freeze", {"freeze": "on Sundays"})
    rule.confirm("resting", reason="read again")
    rule.merge("try", decide="branch")

    assert ("bo", "asked") == (rule.node("freeze").author, rule.operations("freeze")[-1].reason)
    assert "shaky" == rule.node("resting").standing
    assert rule.verify().ok
