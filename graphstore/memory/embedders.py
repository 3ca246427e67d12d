"""Embedders that are ready to use, each an extra of the package: a small model in a wheel, models that run here, and services that speak as OpenAI does.

Any function of a list of texts that gives an array (n, d) will do as well; these only spare the writing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from graphstore.core.read.vector_search import Embedder
from graphstore.errors import InvalidError
from graphstore.values.inputs import at_least_one, text_of

__all__ = ["NAMES", "Embedder", "fastembed", "named", "openai", "wordllama"]

NAMES = ("wordllama", "fastembed", "openai")


class _Ready:
    """A model with what memory wants to know of it."""

    def __init__(self, model: str, dimension: int | None, batch: int, embed: Any) -> None:
        self.model, self.dimension, self.batch = model, dimension, batch
        self._embed = embed

    def __call__(self, texts: list[str], /) -> Any:
        return self._embed(texts)

    def __repr__(self) -> str:
        return f"<embedder {self.model}>"


def wordllama() -> Embedder:
    """Vectors of 256 numbers from word vectors that lie in the wheel of the package `wordllama`: needs no network and no GPU, 16 MB.

    Raises InvalidError without the extra `wordllama`.
    """
    with _root_logger_as_it_is():
        package = _extra("wordllama")
    # its tokenizer is beside the weights, under a name that only a cache folder is searched by
    here = Path(package.__file__).parent
    model = package.WordLlama.load(dim=256, cache_dir=here, disable_download=True)
    return _Ready("wordllama/l2_supercat_256", 256, 256, model.embed)


def fastembed(model: str = "BAAI/bge-small-en-v1.5", **options: Any) -> Embedder:
    """A model of the package `fastembed`, run here by ONNX; fetched when it is not there yet. `options` are those of its `TextEmbedding`.

    Raises InvalidError without the extra `fastembed`, and for a model that it does not know or cannot fetch.
    """
    package = _extra("fastembed")
    try:
        ready = package.TextEmbedding(model_name=text_of("model", model), **options)
    except (ValueError, OSError) as error:
        raise InvalidError(f"fastembed has no model {model!r} here: {error}") from error
    return _Ready(f"fastembed/{model}", None, 256, lambda texts: list(ready.embed(texts)))


def openai(
    model: str = "text-embedding-3-small",
    base_url: str | None = None,
    *,
    api_key: str | None = None,
    dimension: int | None = None,
    **options: Any,
) -> Embedder:
    """A model behind an interface such as OpenAI's, through its own client; without `base_url` and `api_key` the client's environment variables count.

    `dimension`: asked of models that can be cut. Other `options` are those of the client, such as `timeout`. Raises InvalidError without the extra `openai` and
    without a key.
    """
    text_of("model", model)
    package = _extra("openai")
    try:
        client = package.OpenAI(base_url=base_url, api_key=api_key, **options)
    except package.OpenAIError as error:
        raise InvalidError(f"no client for {model!r}: {error}") from error
    cut = {} if dimension is None else {"dimensions": at_least_one("dimension", dimension)}

    def embed(texts: list[str]) -> list[list[float]]:
        # an empty text is refused by the service
        inputs = [text if text.strip() else " . " for text in texts]
        found = client.embeddings.create(model=model, input=inputs, encoding_format="float", **cut)
        return [each.embedding for each in sorted(found.data, key=lambda each: each.index)]

    return _Ready(f"openai/{model}" + (f"/{dimension}" if dimension else ""), dimension, 256, embed)


def named(name: str) -> Embedder:
    """An embedder by name, and after a colon its model: `wordllama`, `fastembed:BAAI/bge-small-en-v1.5`, `openai:text-embedding-3-small`.

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
    """The package of the extra of that name."""
    try:
        return import_module(package)
    except ImportError:
        raise InvalidError(
            f"this embedder needs {package}. Install it: pip install 'graphstore[{package}]'"
        ) from None


@contextmanager
def _root_logger_as_it_is() -> Iterator[None]:
    """What a package sets up of the program's logging while it is imported is taken back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
