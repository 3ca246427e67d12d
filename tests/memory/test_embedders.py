"""Embedders: the one in a wheel works with no network at all, services are asked over HTTP, and a missing package is named."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graphstore import InvalidError, embedders
from graphstore.memory import Memory
from tests.support.embedding import signs

pytestmark = pytest.mark.in_process("its embedders are objects of the test")

OFFLINE = """
import socket

def refuse(*args, **kwargs):
    raise OSError("no network here")

class Refused(socket.socket):
    __init__ = refuse

socket.socket, socket.create_connection, socket.getaddrinfo = Refused, refuse, refuse

import graphstore
from graphstore import embedders
from graphstore.memory.memory import Memory

with graphstore.open(":memory:") as store:
    memory = Memory(store, embedders.wordllama())
    memory.remember("The automobile is crimson.", layer="soul")
    memory.remember("She baked bread on Sunday.", layer="soul")
    memory.remember("Passwords expire after ninety days.", layer="soul")
    for words in ("a red car", "cake in an oven", "login credentials"):
        print(memory.recall(words, 1, hops=0).hits[0].node.text)
    print(store.notices)
"""


def test_the_one_in_a_wheel_works_without_any_network(tmp_path):
    pytest.importorskip("wordllama")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        timeout=60,
    )

    assert (
        "The automobile is crimson.\nShe baked bread on Sunday.\nPasswords expire after ninety days.\n[]\n",
        "",
    ) == (done.stdout, done.stderr)
    assert [] == list(tmp_path.iterdir())


def test_the_one_in_a_wheel_says_what_it_is_and_leaves_logging_alone():
    pytest.importorskip("wordllama")
    before = logging.getLogger().level
    embed = embedders.named("wordllama")

    assert ("wordllama/l2_supercat_256", 256) == (embed.model, embed.dimension)
    assert (2, 256) == embed(["one", ""]).shape
    assert before == logging.getLogger().level


# ---------------------------------------------------------------- a service


class Service(BaseHTTPRequestHandler):
    """Answers as an embedding service does, the vectors in any order, and refuses empty texts."""

    asked: list[dict] = []
    failing = False

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({**asked, "path": self.path, "key": self.headers["Authorization"]})
        if self.failing or "" in asked["input"]:
            self.reply(500 if self.failing else 400, {"error": {"message": "not now"}})
            return
        data = [
            {"object": "embedding", "index": at, "embedding": vector[: asked.get("dimensions")]}
            for at, vector in enumerate(signs(asked["input"]))
        ]
        self.reply(200, {"object": "list", "data": data[::-1], "model": asked["model"],
                         "usage": {"prompt_tokens": 1, "total_tokens": 1}})  # fmt: skip

    def reply(self, status: int, document: dict) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    pytest.importorskip("openai")
    Service.asked, Service.failing = [], False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_service_is_asked_through_its_own_client(store, service):
    embed = embedders.openai("small", service, api_key="key", max_retries=0)
    memory = Memory(store, embed)
    memory.remember_many({"text": text, "layer": "soul"} for text in ("login fails", "a cat", "bread"))

    hits = memory.recall("Bread!").hits

    assert ("bread", 1.0) == (hits[0].node.text, hits[0].vector_score)
    assert [["login fails", "a cat", "bread"], ["Bread!"]] == [asked["input"] for asked in Service.asked]
    assert ("small", "/v1/embeddings", "Bearer key") == tuple(
        Service.asked[0][name] for name in ("model", "path", "key")
    )
    assert "openai/small" in memory.recall("bread").note
    assert [] == list(memory.recall("", layers="tool"))


def test_a_service_can_be_asked_for_shorter_vectors(service):
    embed = embedders.openai("small", service, api_key="key", dimension=4)

    assert [4, 4] == [len(vector) for vector in embed(["a", "b"])]
    assert ("openai/small/4", 4, 4) == (embed.model, embed.dimension, Service.asked[0]["dimensions"])


def test_a_service_that_is_away_leaves_memory_its_words(store, service):
    memory = Memory(store, embedders.openai("small", service, api_key="key", max_retries=0))
    Service.failing = True
    memory.remember("login fails", layer="soul")

    recalled = memory.recall("login")

    assert ["login fails"] == [hit.node.text for hit in recalled]
    assert "full-text only: the embedder 'openai/small' failed (InternalServerError:" in recalled.note
    Service.failing = False
    assert [1.0] == [hit.vector_score for hit in memory.recall("login fails")]


def test_a_key_that_is_missing_is_an_error_that_says_where_to_put_it(monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(InvalidError, match="OPENAI_API_KEY"):
        embedders.openai("small")


# ---------------------------------------------------------------- by name


@pytest.mark.parametrize("name", embedders.NAMES)
def test_a_missing_package_names_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(InvalidError, match=rf"pip install 'graphstore\[{name}\]'"):
        embedders.named(name)


@pytest.mark.parametrize("name", ["", "word2vec", "wordllama:large", 3])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(InvalidError, match="embedder"):
        embedders.named(name)


def test_every_extra_is_in_the_package():
    said = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")

    assert [] == [name for name in embedders.NAMES if f"\n{name} = [" not in said]


# ---------------------------------------------------------------- a model that runs here

VOCABULARY = ("[PAD]", "[UNK]", "car", "automobile", "bread", "cake", "red")
MEANING = ((0, 0), (0, 0), (1, 0.1), (1, 0), (0, 1), (0.1, 1), (0, 0))


def small_model(folder: Path) -> None:
    """A model of seven words and two numbers, as files that fastembed loads: the vector of a text is the mean of its words'."""
    onnx = pytest.importorskip("onnx")
    tokenizers = pytest.importorskip("tokenizers")
    ints = onnx.TensorProto.INT64
    table = onnx.helper.make_tensor(
        "table", onnx.TensorProto.FLOAT, [len(VOCABULARY), 2], [x for row in MEANING for x in row]
    )
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "small",
        [
            onnx.helper.make_tensor_value_info(name, ints, ["n", "t"])
            for name in ("input_ids", "attention_mask")
        ],
        [onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["n", "t", 2])],
        [table],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir()
    onnx.save(model, str(folder / "model.onnx"))
    words = tokenizers.models.WordLevel({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))


def test_a_model_that_runs_here_is_loaded_and_asked(store, tmp_path):
    package = pytest.importorskip("fastembed")
    described = pytest.importorskip("fastembed.common.model_description")
    small_model(tmp_path / "small")
    package.TextEmbedding.add_custom_model(
        "small/words",
        described.PoolingType.MEAN,
        True,
        described.ModelSource(hf="none/none"),
        2,
        "model.onnx",
    )
    embed = embedders.fastembed("small/words", specific_model_path=str(tmp_path / "small"))
    memory = Memory(store, embed)
    memory.remember_many({"text": text, "layer": "soul"} for text in ("red car", "cake"))

    assert "fastembed/small/words" == embed.model
    assert ["red car", "cake"] == [
        memory.recall(text, 1, hops=0).hits[0].node.text for text in ("automobile", "bread")
    ]


def test_a_model_nobody_knows_is_refused():
    pytest.importorskip("fastembed")

    with pytest.raises(InvalidError, match="no model 'nobody/knows'"):
        embedders.named("fastembed:nobody/knows")
