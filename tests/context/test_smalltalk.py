"""What need not be remembered, in several languages; and what must not be mistaken for it."""

from __future__ import annotations

import pytest

from graphstore.context.smalltalk import why_skipped


@pytest.mark.parametrize(
    "text",
    [
        "Hi", "Hello there!", "Good morning! How are you?", "Hello! How can I help you today?", "Thank you very much!",
        "Guten Morgen, wie geht es dir?", "Vielen Dank und bis morgen!", "Hallo! Wie kann ich dir helfen?",
        "Добрый день! Как дела?", "Большое спасибо, до свидания!", "¡Buenos días! ¿Cómo estás?", "Muchas gracias, hasta luego",
        "Bonjour, comment allez-vous ?", "Merci beaucoup, bonne journée !", "Buongiorno, come stai?", "你好",
    ],
)  # fmt: skip
def test_greetings_are_skipped(text):
    assert "greeting" == why_skipped(text)


@pytest.mark.parametrize(
    "text",
    [
        "yes", "No.", "Yes please, thank you!", "ok, sounds good, go ahead", "Ja, genau, alles klar, danke!", "nein danke", "Да, конечно, спасибо!",
        "нет, не надо", "Sí, claro que sí, por supuesto", "Oui, bien sûr, d'accord, merci", "non merci", "certo, va bene", "はい",
    ],
)  # fmt: skip
def test_a_bare_yes_or_no_is_skipped(text):
    assert "yes_no" == why_skipped(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "bash", "command": "ls -la /var/log"}',
        '[{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}]',
        '```json\n{"name": "search", "parameters": {"q": "kuzu"}}\n```',
        '{"tool_calls": [{"function": {"name": "search", "argum',
        "<tool_call>search for the word</tool_call>",
    ],
)
def test_calls_of_tools_are_skipped(text):
    assert "tool_call" == why_skipped(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error: cannot open the file", "ValueError: invalid literal for int()", "fatal: not a git repository", "error[E0382]: borrow of moved value",
        "bash: foo: command not found", "java.lang.NullPointerException", "Process exited with code 137", "503 Service Unavailable",
        "Fehler: Datei nicht gefunden", "Ошибка: файл не найден",
    ],
)  # fmt: skip
def test_short_lines_of_errors_are_skipped(text):
    assert "error" == why_skipped(text)


@pytest.mark.parametrize(
    "text",
    [
        "No, the deploy is on Thursday from now on.",
        "Hello, my name is Ada and I work on the parser.",
        "Error handling in Go: what do you recommend?",
        'Please use {"tool": "bash"} as the form of a call from now on',
        '{"region": "eu-central-1", "replicas": 3}',
        "The build fails with:\nValueError: invalid literal for int()",
        "Ja, aber nur wenn der Server in Frankfurt steht.",
        "Спасибо, теперь база данных работает быстрее.",
        "ok " * 60 + "ok",
    ],
)
def test_what_says_something_is_kept(text):
    assert why_skipped(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "blank"),
        (" \n", "blank"),
        ("nineteen characters", "short"),
        ("twenty characters ab", None),
        ("x" * 20, None),
    ],
)
def test_what_is_below_twenty_characters_is_short(text, reason):
    assert reason == why_skipped(text)


def test_a_long_row_of_phrases_is_told_at_once():
    assert "greeting" == why_skipped("thank you very much " * 6)
    assert why_skipped("thank you very much " * 5 + "parser") is None
