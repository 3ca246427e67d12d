"""The commands of memory: each does what its method does."""

from __future__ import annotations

import pytest

import graphstore
from tests.cli.test_command_line import answer, process, refused, run
from tests.support.ledger_rows import rows


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.gs"
    run("init", path)
    return path


def test_remember_keeps_a_chunk_and_says_it_once(path):
    node = answer("remember", path, "the car is red", "--layer", "soul", "--source", "SOUL.md", "--tag", "colour",
                  "--metadata", '{"line": 3}', "--user", "ada")  # fmt: skip

    assert ("chunk", "soul:SOUL.md", ["colour"]) == (node["kind"], node["source"], node["tags"])
    assert {"user": "ada", "metadata": {"line": 3}} == node["content"]
    assert node["id"] in run(
        "remember", path, "the car is red", "--layer", "soul", "--source", "SOUL.md", "--user", "ada"
    )
    assert 1 == answer("stats", path)["nodes"]


def test_recall_asks_memory_by_layer_and_user(path):
    for layer, user in (("soul", "ada"), ("tool", "bob")):
        run("remember", path, f"car in {layer}", "--layer", layer, "--user", user)

    assert 2 == len(answer("recall", path, "car")["hits"])
    assert ["soul"] == [hit["layer"] for hit in answer("recall", path, "car", "--layer", "soul")["hits"]]
    assert ["tool"] == [hit["layer"] for hit in answer("recall", path, "car", "--user", "bob")["hits"]]
    assert "full-text only" in run("recall", path, "car", "--layer", "soul")
    assert "unknown layer 'souls'" in refused("recall", path, "car", "--layer", "souls")
    assert [] == answer("recall", path, "car", "--layer", "soul", "--author", "nobody")["hits"]
    assert [] == answer("recall", path, "car", "--author", "nobody")["hits"]
    assert "take no --kind" in refused("recall", path, "car", "--layer", "soul", "--kind", "fact", code=2)


def test_reembed_makes_vectors_and_recall_uses_them(path):
    run("remember", path, "the car is red", "--layer", "soul")
    run("remember", path, "a cat sleeps", "--layer", "soul", "--embedder", "tests.support.embedding:signs")

    assert {"embedded": 1} == answer("reembed", path, "--embedder", "tests.support.embedding:signs")
    assert [("tests.support.embedding:signs", 2)] == rows(
        path, "SELECT model, count(*) FROM vector GROUP BY model"
    )
    recalled = answer("recall", path, "The Cat; is red", "--embedder", "tests.support.embedding:signs")
    assert {1, 2} == {hit["vector_rank"] for hit in recalled["hits"]}
    assert "embedded 0." in run("reembed", path, "--embedder", "tests.support.embedding:signs")
    assert "unknown embedder 'word2vec'" in refused("reembed", path, "--embedder", "word2vec")
    assert "names no function" in refused("reembed", path, "--embedder", "tests.support.embedding:no", code=2)


def test_memory_stats_tell_each_layer(path):
    run("remember", path, "the car is red", "--layer", "soul")

    told = answer("memory", "stats", path)
    assert {"soul": 1, "tool": 0} == {
        one["layer"]: one["chunks"] for one in told["layers"] if one["layer"] in ("soul", "tool")
    }
    assert "1 chunk, at most 50,000." in run("memory", "stats", path)


def test_lifecycle_says_what_would_go_and_lets_it_go(path):
    run("remember", path, "a log", "--layer", "tool")

    assert {"tool": 1} == answer("lifecycle", path, "--dry-run", "--now", "2999-01-01")["layers"]
    assert 1 == len(answer("recall", path, "log")["hits"])
    assert "1 gone (tool 1)" in run("lifecycle", path, "--now", "2999-01-01")
    assert [] == answer("recall", path, "log")["hits"]
    with graphstore.open(path, read_only=True) as store:
        assert "evict" == store.changes()[-1].verb


def test_the_commands_run_as_a_process_of_their_own(path):
    done = process("remember", path, "the car is red", "--layer", "soul")

    assert (0, "") == (done.returncode, done.stderr)
    assert "unknown layer" in process("remember", path, "x", "--layer", "none").stderr


def test_a_write_says_what_stands_and_says_the_same_or_something_contrary(path):
    run("add-node", path, "fact", '{"says": "Log files are kept for 90 days"}', "--id", "ninety")
    words = run(
        "add-node", path, "fact", '{"says": "Log files are kept for 30 days"}', "--id", "thirty", "--warn"
    )
    node = answer("add-node", path, "fact", '{"says": "log files are kept for 30 days"}', "--warn")

    assert "seems to contradict: ninety: Log files are kept for 90 days" in words
    assert "supersede(old='ninety', by='thirty', reason='…')" in words
    assert (["thirty"], ["ninety"]) == tuple(
        [each["id"] for each in node[name]] for name in ("similar", "maybe_contrary")
    )
    assert "seems" not in run("add-node", path, "fact", '{"says": "Log files are kept for 20 days"}')
    assert "both stand" in run("resolve", path, "thirty", "ninety", "--keep", "both", "--reason", "two sorts")


def test_memory_and_messages_are_warned_of_too(path, tmp_path):
    run("remember", path, "Anna prefers tea in the morning", "--layer", "soul")
    assert "contradict" in run(
        "remember", path, "Anna prefers coffee in the morning", "--layer", "soul", "--warn"
    )
    messages = tmp_path / "messages.json"
    messages.write_text(
        '[{"role": "user", "content": "The bus leaves at 8:10"}, {"role": "user", "content": "The bus leaves at 8:25"}]'
    )
    assert "seems to contradict" in run("memorize", path, messages)
