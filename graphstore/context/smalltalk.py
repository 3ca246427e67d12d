"""Recognize messages that need not be remembered: greetings, a bare yes or no, tool calls, error lines, and very short texts.

Only the text counts, in a handful of languages. A text that is not surely one of these is worth keeping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import orjson

from graphstore.values.sameness import words

Reason = Literal["blank", "tool_call", "error", "greeting", "yes_no", "short"]
LEAST = 20
"""In characters: a shorter text is not remembered."""
_LONGEST = 120  # characters: a longer text is more than a greeting
_LONGEST_ERROR = 200

# a phrase each, between bars
_GREETINGS = """
hi|hello|hey|hiya|howdy|greetings|welcome|good morning|good afternoon|good evening|good night|good day|how are you|how are you doing|how's it going
how is it going|what's up|nice to meet you|how can i help you|how can i help|how may i help you|what can i do for you|bye|goodbye|see you|see you later
see you tomorrow|have a nice day|have a good day|thanks|thank you|thank you very much|thank you so much|many thanks|thanks a lot|you're welcome
you are welcome|no problem|my pleasure|cheers|today
hallo|guten morgen|guten tag|guten abend|gute nacht|moin|servus|grüß gott|grüezi|wie geht es dir|wie geht es ihnen|wie geht's|wie geht's dir
wie kann ich helfen|wie kann ich dir helfen|wie kann ich ihnen helfen|tschüss|auf wiedersehen|bis bald|bis später|bis morgen|schönen tag|schönen tag noch
danke|danke schön|danke sehr|dankeschön|vielen dank|bitte schön|bitte sehr|gern geschehen|gerne|heute
привет|здравствуй|здравствуйте|добрый день|доброе утро|добрый вечер|доброй ночи|как дела|как ты|как вы|чем могу помочь|чем я могу помочь|чем могу вам помочь
пока|до свидания|до встречи|до завтра|хорошего дня|спасибо|большое спасибо|спасибо большое|не за что|всего доброго|сегодня
hola|buenos días|buenas tardes|buenas noches|buenas|qué tal|cómo estás|cómo está|cómo está usted|en qué puedo ayudarte|en qué puedo ayudarle
cómo puedo ayudarte|adiós|hasta luego|hasta mañana|hasta pronto|gracias|muchas gracias|de nada|hoy
bonjour|bonsoir|bonne nuit|salut|coucou|ça va|comment ça va|comment allez-vous|comment vas-tu|comment puis-je vous aider|comment puis-je t'aider
au revoir|à bientôt|à demain|bonne journée|merci|merci beaucoup|de rien|je vous en prie|aujourd'hui
ciao|buongiorno|buonasera|buona notte|come stai|come va|come posso aiutarti|arrivederci|grazie|grazie mille|prego
olá|oi|bom dia|boa tarde|boa noite|tudo bem|como posso ajudar|obrigado|obrigada|muito obrigado|tchau
你好|您好|早上好|晚上好|谢谢|再见|こんにちは|おはようございます|こんばんは|ありがとう|ありがとうございます
"""
_ANSWERS = """
yes|yeah|yep|yup|ok|okay|sure|sure thing|of course|certainly|absolutely|exactly|right|correct|agreed|fine|great|perfect|sounds good|go ahead|do it|do that
got it|i see|no|nope|nah|not now|not really|never mind|maybe|alright|all right
ja|jawohl|jo|genau|klar|na klar|sicher|natürlich|stimmt|einverstanden|in ordnung|alles klar|passt|nein|nee|nö|doch|vielleicht|gut|super
да|ага|угу|конечно|хорошо|ладно|понятно|понял|поняла|верно|точно|согласен|согласна|нет|не надо|может быть|отлично
sí|si|claro|claro que sí|vale|de acuerdo|por supuesto|exacto|perfecto|bueno|tal vez|quizás
oui|ouais|bien sûr|d'accord|entendu|exactement|parfait|non|peut-être
certo|va bene|d'accordo|forse|sim|claro que sim|não|talvez|是|是的|好|好的|不|不是|はい|いいえ
"""
_FILLERS = """
please|bitte|пожалуйста|por favor|s'il vous plaît|s'il te plaît|per favore|and|then|so|well|oh|ah|hmm|there|everyone|all|again|too|du|denn|nun|und|а|и|ну|y|et|e
"""

_CALL_KEYS = frozenset({
    "tool", "tool_name", "tool_calls", "tool_call", "tool_use_id", "tool_call_id", "tool_result", "toolCall", "toolCalls", "toolName", "toolCallId",
    "toolUseId", "function_call", "functionCall", "functionResponse", "function", "arguments",
})  # fmt: skip
_CALL_TYPES = frozenset({"tool_use", "tool_result", "tool_call", "toolCall", "toolResult", "function", "function_call"})  # fmt: skip
_FENCED = re.compile(r"```\w*\s*\n?(.*?)\n?\s*```", re.DOTALL)
# a truncated call is not JSON, nor is one in tags
_CALL_BEGINS = re.compile(rf'[\[{{\s]*"(?:{"|".join(sorted(_CALL_KEYS))})"\s*:')
_CALL_TAG = re.compile(r"<(?:\w+:)?(?:tool_call|tool_use|tool_result|function_calls?|invoke)\b")
_ERROR = re.compile(
    r"(?:error|fatal|panic|exception|traceback|fehler|ошибка|erreur|errore|erro)\b[^:\s]{0,20}\s?(?:\[[^\]]*\]|\([^)]*\)|\d+)?:"
    r"|(?:[\w.]+\.)?\w*(?:Error|Exception)(?::|\Z)"
    r"|.*(?:command not found|no such file or directory|permission denied|connection (?:refused|reset|timed out)|timed out)\W*\Z"
    r"|.*\bexit(?:ed with)? (?:code|status) [1-9]\d*\W*\Z"
    r"|(?:HTTP\S* )?[45]\d\d [A-Z][\w ]*\Z",
    re.IGNORECASE,
)


def why_skipped(text: str, least: int = LEAST) -> Reason | None:
    """Return why a text need not be remembered; None if it is worth it. Below `least` characters it is too short.

    >>> why_skipped("Guten Morgen, wie geht's?")
    'greeting'
    >>> why_skipped("Да, конечно, спасибо!")
    'yes_no'
    >>> why_skipped("The deploy of Tuesday broke the login.") is None
    True
    """
    text = text.strip()
    if not text:
        return "blank"
    if _is_call(text):
        return "tool_call"
    if len(text) <= _LONGEST_ERROR and "\n" not in text and not text.endswith("?") and _ERROR.match(text):
        return "error"
    if len(text) <= _LONGEST:
        plain = " ".join(words(text))
        if _GREETING.fullmatch(plain):
            return "greeting"
        if _ANSWER.fullmatch(plain):
            return "yes_no"
    return "short" if len(text) < least else None


def _is_call(text: str) -> bool:
    fenced = _FENCED.fullmatch(text)
    inner = (fenced[1] if fenced else text).strip()
    if _CALL_TAG.match(inner) or _CALL_BEGINS.match(inner):
        return True
    if inner[:1] not in ("{", "["):
        return False
    try:
        value = orjson.loads(inner)
    except orjson.JSONDecodeError:
        return False
    parts = value if isinstance(value, list) else [value]
    return bool(parts) and all(isinstance(part, dict) and _calls(part) for part in parts)


def _calls(part: dict[str, object]) -> bool:
    """Return True if an object is a tool call or the result of one."""
    named = "name" in part and ("input" in part or "parameters" in part)
    return named or not _CALL_KEYS.isdisjoint(part) or part.get("type") in _CALL_TYPES


def _phrases(*tables: str) -> set[str]:
    """Return the phrases of tables, normalized to their words."""
    lines = (line for table in tables for line in table.strip().splitlines())
    return {" ".join(words(phrase)) for line in lines for phrase in line.split("|")}


def _made_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of a text that consists of these phrases only, one after the other."""
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(rf"(?:(?:{'|'.join(map(re.escape, longest_first))})(?: |\Z))+")


_GREETING = _made_of(_phrases(_GREETINGS, _FILLERS))
_ANSWER = _made_of(_phrases(_ANSWERS, _GREETINGS, _FILLERS))
