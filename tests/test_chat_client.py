"""A language model is asked over HTTP: of a real server, with its refusals, its pauses and its nonsense."""

from __future__ import annotations

import pytest

from graphstore.chat_client import ChatClient, Completion, key_in
from graphstore.errors import EngineError, InvalidError
from tests.support.chat_service import chat_service


def said_last(asked):
    return f"you said: {asked['messages'][-1]['content']}"


@pytest.fixture
def service():
    with chat_service(said_last) as running:
        yield running


def test_a_model_is_asked_and_its_answer_comes_with_its_tokens(service):
    client = ChatClient(service.url, "small", key="k1", temperature=0)

    assert Completion("you said: hello", 12, 3, False) == client.complete("be brief", "hello", max_tokens=9)
    (asked,) = service.asked
    assert ("small", 0, 9, "/v1/chat/completions") == tuple(
        asked[name] for name in ("model", "temperature", "max_tokens", "path")
    )
    assert ["system", "user"] == [message["role"] for message in asked["messages"]]
    assert ["Bearer k1"] == service.keys


def test_without_a_key_none_is_sent_and_the_whole_address_may_be_given(service):
    ChatClient(f"{service.url}/chat/completions/", "small").complete("", "hello")

    assert ([None], "/v1/chat/completions") == (service.keys, service.asked[0]["path"])


def test_a_busy_service_is_asked_again(service):
    service.statuses = [429, 503]
    client = ChatClient(service.url, "small", tries=3)

    assert "you said: hello" == client.complete("", "hello").text
    assert 3 == len(service.asked)


@pytest.mark.parametrize(("status", "times"), [(401, 1), (400, 1), (307, 1), (429, 2)])
def test_a_refusal_is_told_without_the_key(service, status, times):
    service.statuses = [status] * 2
    client = ChatClient(service.url, "small", key="secret-key", tries=2)

    with pytest.raises(EngineError, match=f"answered {status}: not now") as refused:
        client.complete("", "hello")
    assert times == len(service.asked)
    assert "secret" not in f"{refused.value} {client!r}"


@pytest.mark.parametrize(
    "document", [{}, {"choices": []}, {"choices": [{"message": {"content": None}}]}, [1]]
)
def test_what_is_no_answer_is_refused(service, document):
    service.document = document
    with pytest.raises(EngineError, match="gave no text"):
        ChatClient(service.url, "small").complete("", "hello")


def test_a_service_that_is_not_there_is_named(service):
    url = service.url
    service.server_close()
    service.shutdown()
    with pytest.raises(EngineError, match="cannot be reached"):
        ChatClient(url, "small", tries=1).complete("", "hello")


@pytest.mark.parametrize("given", [("ftp://x/v1", "m"), ("nonsense", "m"), (None, "m"), ("http://x/v1", " ")])
def test_an_address_or_a_name_that_is_none_is_refused(given):
    with pytest.raises(InvalidError):
        ChatClient(*given)


def test_the_key_is_in_the_environment():
    assert "a" == key_in({"OPENAI_API_KEY": "b", "GRAPHSTORE_LLM_KEY": "a"})
    assert "b" == key_in({"OPENAI_API_KEY": "b", "GRAPHSTORE_LLM_KEY": ""})
    assert key_in({}) is None
