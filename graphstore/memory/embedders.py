"""Embedders that are ready to use, each an extra of the package, and the embedder setting of a store, by which its texts are found by meaning too.

There are a small model in a wheel, models that run locally, and services with OpenAI's interface. Any function from a list of texts to an array (n, d)
works as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.inputs import at_least_one, text_of
from graphstore.values.models import Value
from graphstore.view import vector_search
from graphstore.view.vector_search import Embedder, Meanings, QuestionMeaning
from graphstore.view.view import Reader

__all__ = [
    "NAMES",
    "Embedder",
    "Embedding",
    "embedding",
    "fastembed",
    "named",
    "openai",
    "set_embedder",
    "wordllama",
]

NAMES = ("wordllama", "fastembed", "openai")


class Embedding(Value):
    """The embedder of a store (None: there is none), how many versions, events and messages say something, and how many of them have no vector of it yet."""

    embedder: str | None
    texts: int
    missing: int

    def __str__(self) -> str:
        if self.embedder is None:
            return "no embedder: texts are found by their words"
        return f"{self.embedder}: {self.missing:,} of {self.texts:,} texts have no vector yet"


@registry.write("memory")
def set_embedder(store: Store, name: str | None) -> None:
    """Find all that the store says by its meaning too, with the embedder of this name, such as `wordllama`; None: by words alone. Kept in the store.

    Vectors are made when it is searched, and the embedder before serves until the new one has all. Raises InvalidError for one that is unknown, or
    whose package is not here.
    """
    before = list(store.setting(vector_search.EMBEDDER) or ())
    if name is not None:
        ready(name)
    wanted = [] if name is None else [name, *(other for other in before if other != name)][:2]
    if wanted[:1] != before[:1]:
        store.keep_setting("set_embedder", vector_search.EMBEDDER, wanted)


@registry.read("memory")
def embedding(store: Store) -> Embedding:
    """The embedder of a store, and how much of what is recorded has no vector of it yet. Embeds nothing."""
    meanings = newest(store)
    if meanings is None:
        return Embedding(embedder=None, texts=0, missing=0)
    texts, missing = meanings.counted()
    return Embedding(
        embedder=vector_search.embedders(store)[0] or meanings.model, texts=texts, missing=missing
    )


def lend(store: Store, embed: Embedder | None) -> None:
    """Use this embedder instead of the store's setting while the store is open here, on its branches too. Raises InvalidError if it is not callable."""
    registry.only_here(store, "an embedder of your own", "Give its name instead: set_embedder(store, name).")
    if embed is not None and not callable(embed):
        raise InvalidError.choice("embedder", embed, NAMES)
    vector_search.lend(store, embed)


def use(store: Store, embedder: str | Embedder) -> None:
    """Set a store's embedder by name. A function, or any embedder for a read-only store, is only lent to this opening."""
    if isinstance(embedder, str) and (isinstance(store, registry.Elsewhere) or not store.read_only):
        set_embedder(store, embedder)
    else:
        lend(store, ready(embedder) if isinstance(embedder, str) else embedder)


def asked(view: Reader, text: str) -> QuestionMeaning:
    """Return the meaning of a text to the embedder of the view's store, if it has one. Call it before the store's lock is taken."""
    try:
        return QuestionMeaning(vector_search.serving(view, ready), text)
    except GraphStoreError as error:
        return QuestionMeaning(None, text, str(error))


def newest(view: Reader) -> Meanings | None:
    """Return the vectors of the store's newest embedder, also while the one before still serves."""
    return vector_search.newest(view, ready)


@cache
def ready(name: str) -> Embedder:
    """Return the embedder with a name, made once."""
    return named(name)


class _LoadedModel:
    """A model with the attributes that memory reads: `model`, `dimension` and `batch`."""

    def __init__(self, model: str, dimension: int | None, batch: int, embed: Any) -> None:
        self.model, self.dimension, self.batch = model, dimension, batch
        self._embed = embed

    def __call__(self, texts: list[str], /) -> Any:
        return self._embed(texts)

    def __repr__(self) -> str:
        return f"<embedder {self.model}>"


def wordllama() -> Embedder:
    """Return an embedder with vectors of 256 numbers, from word vectors in the wheel of the package `wordllama`. It needs no network and no GPU, and 16 MB.

    Raises InvalidError without the extra `wordllama`.
    """
    with _root_logger_as_it_is():
        package = _extra("wordllama")
    # Its tokenizer is next to the weights, under a name that is only searched for in a cache folder.
    here = Path(package.__file__).parent
    model = package.WordLlama.load(dim=256, cache_dir=here, disable_download=True)
    return _LoadedModel("wordllama/l2_supercat_256", 256, 256, model.embed)


def fastembed(model: str = "BAAI/bge-small-en-v1.5", **options: Any) -> Embedder:
    """Return a model of the package `fastembed`, run locally by ONNX and downloaded if missing. `options` are those of its `TextEmbedding`.

    Raises InvalidError without the extra `fastembed`, and for a model that is unknown or cannot be downloaded.
    """
    package = _extra("fastembed")
    try:
        ready = package.TextEmbedding(model_name=text_of("model", model), **options)
    except (ValueError, OSError) as error:
        raise InvalidError(f"fastembed has no model {model!r} here: {error}") from error
    return _LoadedModel(f"fastembed/{model}", None, 256, lambda texts: list(ready.embed(texts)))


def openai(
    model: str = "text-embedding-3-small",
    base_url: str | None = None,
    *,
    api_key: str | None = None,
    dimension: int | None = None,
    **options: Any,
) -> Embedder:
    """Return a model behind an OpenAI-compatible interface, through OpenAI's client. Its environment variables replace a missing `base_url` or `api_key`.

    `dimension` is requested from models whose vectors can be shortened. Other `options` are those of the client, such as `timeout`. Raises InvalidError
    without the extra `openai` and without a key.
    """
    text_of("model", model)
    package = _extra("openai")
    try:
        client = package.OpenAI(base_url=base_url, api_key=api_key, **options)
    except package.OpenAIError as error:
        raise InvalidError(f"no client for {model!r}: {error}") from error
    cut = {} if dimension is None else {"dimensions": at_least_one("dimension", dimension)}

    def embed(texts: list[str]) -> list[list[float]]:
        # The service refuses an empty text.
        inputs = [text if text.strip() else " . " for text in texts]
        found = client.embeddings.create(model=model, input=inputs, encoding_format="float", **cut)
        return [each.embedding for each in sorted(found.data, key=lambda each: each.index)]

    return _LoadedModel(f"openai/{model}" + (f"/{dimension}" if dimension else ""), dimension, 256, embed)


def named(name: str) -> Embedder:
    """Return an embedder by name, with its model after a colon: `wordllama`, `fastembed:BAAI/bge-small-en-v1.5`, `openai:text-embedding-3-small`.

    Raises InvalidError for an unknown one.
    """
    kind, _, model = text_of("embedder", name).partition(":")
    if kind not in NAMES or (kind == "wordllama" and model):
        raise InvalidError.choice("embedder", name, NAMES)
    if kind == "wordllama":
        return wordllama()
    make = fastembed if kind == "fastembed" else openai
    return make(model) if model else make()


def _extra(package: str) -> Any:
    """Import the package of the extra with that name. Raises InvalidError if it is not installed."""
    try:
        return import_module(package)
    except ImportError:
        raise InvalidError(
            f"this embedder needs {package}. Install it: pip install 'graphstore[{package}]'"
        ) from None


@contextmanager
def _root_logger_as_it_is() -> Iterator[None]:
    """Restore the root logger after the block: a package may configure it while it is imported."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
