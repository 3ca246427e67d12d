"""Convert texts to terms of an index, and questions to terms to search for: words by their stems, names and codes as they are.

A term is a normalized word of a language of the store: compatible forms unified (NFKC), case and diacritics folded, stemmed by Snowball. Scripts written
without spaces are split into pairs of characters. Names, codes, versions, paths and numbers are terms themselves, in addition to their parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import Stemmer

from graphstore.errors import InvalidError

VERSION = 1
"""The version of the terms of a text. Increase it with each change, so that saved words are read again."""
ENGLISH = ("english",)
"""The languages of a store that names none."""
LANGUAGES = tuple(Stemmer.algorithms())
FIELDS = ("kind", "type", "tag", "key", "scope", "author", "source", "standing", "since", "until")
"""The fields that `field:value` in a question may name; any other name before a colon is a word."""
PART = 0.5
"""The weight of a part of a name in a question, where the whole name has 1."""

_LONG = 6  # letters; a word this long also matches by its beginning: expir for expiry, repair for repairman
_KEPT = 200_000  # tokens whose terms are cached
_POINTS = "".join(map(chr, (at for at in range(0x590, 0x1100) if unicodedata.category(chr(at))[0] == "M")))
_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
)
_PAIRED_START = re.compile(f"[{_PAIRED}]")
_RUN = rf"[^\W_{_PAIRED}](?:[^\W_{_PAIRED}]|[\u0300-\u036f{_POINTS}])*"
_NUMBERED = r"(?:[A-Z]\w*[A-Z]\w* v?|[A-Z]\w+ [vV])\d+(?:\.\d+)*(?![^\W_])"
_TOKEN = re.compile(
    rf"[{_PAIRED}{_POINTS}]+|\d{{1,3}}(?:,\d{{3}})+(?![\d,])|{_NUMBERED}|{_RUN}(?:(?:[-./:@#+\\'’]|_+|://|::){_RUN})*"
)
_PIECE = re.compile(_RUN)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HUMP = re.compile(r"[a-z][A-Z]")
_MIXED = re.compile(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")
_DIGIT = re.compile(r"\d")
_JOINED = re.compile(r"[./:@#+\\_]")
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0640]")
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe", "ё": "е", "’": "'"}
)
_ASKED_FIELD = re.compile(rf'(?<!\S)({"|".join(FIELDS)}):("[^"]+"|[^\s"]+)')
_QUOTED = re.compile(r'(?<!\w)["“„«]([^"“”„«»]+)["”“»]')
_WITHOUT = re.compile(r"(?<!\S)-(?=[^\W\d_])(\S+)")
_SCRIPTS = {
    "CYRILLIC": ("russian", "serbian"),
    "GREEK": ("greek",),
    "ARABIC": ("arabic", "persian"),
    "ARMENIAN": ("armenian",),
    "DEVANAGARI": ("hindi", "nepali"),
    "HEBREW": ("yiddish",),
    "TAMIL": ("tamil",),
}
_OTHER_SCRIPTS = frozenset(chain.from_iterable(_SCRIPTS.values())) - {"serbian"}

_IRREGULAR = {
    form: words.split()[0]
    for words in (
        "go went gone goes/buy bought/meet met/run ran/teach taught/think thought/write wrote written/speak spoke spoken/tell told"
        "/make made/get got gotten/give gave given/take took taken/see saw seen/find found/feel felt/leave left/lose lost/pay paid"
        "/say said/sell sold/send sent/spend spent/win won/keep kept/begin began begun/break broke broken/choose chose chosen"
        "/drive drove driven/fly flew flown/grow grew grown/know knew known/draw drew drawn/ride rode ridden/sing sang sung"
        "/sleep slept/catch caught/build built/hold held/hear heard/lead led/become became/bring brought/come came/eat ate eaten"
        "/fall fell fallen/fight fought/forget forgot forgotten/forgive forgave forgiven/hide hid hidden/rise rose risen"
        "/shake shook shaken/shoot shot/sit sat/stand stood/steal stole stolen/swim swam swum/throw threw thrown/wake woke woken"
        "/wear wore worn/understand understood/seek sought/stick stuck/strike struck/swear swore sworn/tear tore torn/bite bit bitten"
        "/blow blew blown/dig dug/do did done does/drink drank drunk/feed fed/freeze froze frozen/hang hung/lend lent/light lit"
        "/mean meant/deal dealt/bend bent/ring rang rung/sink sank sunk/slide slid/spin spun/sweep swept/weep wept/lay laid"
        "/child children/man men/woman women/person people/foot feet/tooth teeth/mouse mice/goose geese/life lives/wife wives"
        "/knife knives/leaf leaves/half halves/shelf shelves/index indices/appendix appendices/datum data/criterion criteria"
        "/good better best/bad worse worst"
    ).split("/")
    for form in words.split()[1:]
}
"""Irregular English forms, each with its base word."""

_STOPS = {
    "english": "a an the and or but if of to in on at by for from with about as into than then so too very just also any some such"
    " i me my mine we us our ours you your yours he him his she her hers it its they them their theirs this that these those there here"
    " is are was were be been being am do does did doing done have has had having can could will would shall should may might must"
    " what which who whom whose when where why how many much long often ever please tell say show give list find know"
    " dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt whats whos wheres hows im ive",
    "german": "der die das den dem des ein eine einen einem einer eines und oder aber wenn von vom zu zum zur in im an am auf bei für aus"
    " mit über nach als wie so auch nur schon noch ich mich mir mein meine meinen meinem meiner wir uns unser unsere du dich dir dein"
    " deine er ihn ihm sein seine sie ihr ihre ihren es man dieser diese dieses diesem diesen ist sind war waren wird werden wurde"
    " wurden sein habe haben hat hatte hatten kann können konnte soll sollen sollte muss müssen darf will was welche welcher welches"
    " welchen welchem wer wen wem wessen wann wo wohin woher warum wieso wieviel viele viel oft bitte gibt es sich hier da dort",
    "russian": "и или но а если в во на у к ко от до из с со о об обо по за под над при для как так же бы ли не ни то это этот эта эти"
    " этого этой этом тот та те того я меня мне мной мы нас нам наш наша наше наши ты тебя вы вас вам ваш ваша он его ему ним она её ей"
    " ее них они их им быть был была было были есть будет будут что чего чему чем кто кого кому кем какой какая какое какие каком каких"
    " когда где куда откуда почему зачем сколько который которая которые уже ещё еще только тоже там тут",
    "french": "le la les un une des du de d l et ou mais si à au aux en dans sur par pour avec sans comme plus aussi je me moi mon ma mes"
    " nous notre nos tu te toi ton ta tes vous votre vos il elle on ils elles lui leur leurs ce cet cette ces ça c se sa son ses y est"
    " sont était étaient être été a ai as ont avait avoir fait que qu quoi quel quelle quels quelles qui dont où quand comment pourquoi"
    " combien n ne pas j m t s",
    "spanish": "el la los las un una unos unas y o pero si de del a al en por para con sin sobre como más también yo me mi mis nosotros"
    " nos nuestro nuestra tú te tu tus usted él ella ellos ellas le les lo se su sus este esta estos estas ese esa eso es son era eran"
    " ser fue fueron está están estar ha han había haber hay qué que cuál cuáles quién quiénes cuándo cuando dónde donde cómo por"
    " cuánto cuántos cuánta cuántas no",
    "italian": "il lo la i gli le un uno una e o ma se di del della dei delle a al alla in nel nella da dal su per con come più anche io"
    " mi mio mia noi ci nostro tu ti tuo voi vi lui lei loro si suo sua questo questa questi queste quello è sono era erano essere stato"
    " ha hanno aveva avere che cosa quale quali chi quando dove come perché quanto quanti quanta quante non",
    "portuguese": "o a os as um uma uns umas e ou mas se de do da dos das em no na nos nas por para com sem sobre como mais também eu me"
    " meu minha nós nosso tu te você ele ela eles elas lhe seu sua este esta esse essa isso é são era eram ser foi foram está estão tem"
    " têm tinha ter há que qual quais quem quando onde como porquê quanto quantos quanta quantas não",
    "dutch": "de het een en of maar als van te in op aan bij voor uit met over naar dan zo ook nog ik mij me mijn wij we ons onze jij je"
    " jouw u uw hij hem zijn zij ze haar hun deze dit die dat er is was waren wordt worden werd heeft hebben had kan kunnen moet wat"
    " welke wie wanneer waar waarom hoe hoeveel veel vaak",
}
_PARTICLES = frozenset("in on up out off down back over".split())
"""Particles that are written together with the verb before them as a noun: to log in, the login."""
_MONTHLY = frozenset({"May", "Will", "Mine"})  # names, unless they begin the question


class Term(NamedTuple):
    """A word of a question: as written, the index terms that match it, its weight, and whether it may be the beginning of a longer word."""

    word: str
    forms: tuple[str, ...]
    weight: float = 1
    prefix: bool = False


class ParsedQuestion(NamedTuple):
    """A parsed question: its terms, phrases in quotes, excluded words, filters by field, and tokens that look like an id, a key or a code."""

    text: str
    terms: tuple[Term, ...]
    phrases: tuple[str, ...] = ()
    without: tuple[Term, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


@cache
def _stops(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the stop words of all these languages."""
    return frozenset(fold(word) for name in languages for word in _STOPS.get(name, "").split())


class Analyzer:
    """Converts texts and questions to terms, in some languages. It is not thread-safe."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH) -> None:
        for language in languages:
            if language not in LANGUAGES:
                raise InvalidError.choice("language", language, LANGUAGES)
        self.languages = languages
        self.identity = f"{VERSION} {Stemmer.version()} {unicodedata.unidata_version} {' '.join(languages)}"
        self._stemmers = {name: Stemmer.Stemmer(name, 0).stemWord for name in languages}
        self._stops = _stops(languages)
        self._terms = lru_cache(_KEPT)(self.made_of)

    def terms(self, text: str) -> list[str]:
        """Return the index terms of a text, in order, with repeats.

        >>> Analyzer().terms("Logins: PASETO v4, see src/auth.py")
        ['login', 'paseto', '4', 'v4', 'paseto v4', 'see', 'src', 'auth', 'py', 'src/auth.py']
        """
        return list(chain.from_iterable(map(self._terms, _tokens(text))))

    def terms_of(self, token: str) -> tuple[str, ...]:
        """Return the index terms of one token of a text."""
        return self._terms(token)

    def ask(self, text: str) -> ParsedQuestion:
        """Parse a question. Stop words are left out, unless nothing else remains."""
        rest, fields = text, asked_fields(text)
        rest = _ASKED_FIELD.sub(" ", rest)
        phrases = [each.strip() for each in _QUOTED.findall(rest)]
        without = [term for each in _WITHOUT.findall(rest) for term in self._asked(each, parts=False)]
        rest = _WITHOUT.sub(" ", rest)
        tokens = list(_tokens(rest))
        quoted = {token for phrase in phrases for token in _tokens(phrase)}
        telling = [
            token
            for at, token in enumerate(tokens)
            if token in quoted or not self._is_stop(token, at, tokens)
        ]
        terms: dict[tuple[str, ...], Term] = {}
        for token in telling or tokens:
            for term in self._asked(token):
                terms.setdefault(term.forms, term)
        for token, particle in pairwise(tokens):
            if fold(particle) in _PARTICLES and (verb := terms.get(forms := self._stems(token))):
                joined = (each for form in forms for each in self._stems(form + fold(particle)))
                terms[forms] = verb._replace(forms=(*forms, *joined))
        names = dict.fromkeys(token for token in tokens if is_name(token))
        return ParsedQuestion(
            text, tuple(terms.values()), tuple(phrases), tuple(without), tuple(fields), tuple(names)
        )

    def _asked(self, token: str, *, parts: bool = True) -> Iterator[Term]:
        """Yield the terms of a token of a question: a name as a whole, and its parts with less weight."""
        if " " in token:  # a name and its number: as often written apart
            for each in token.split():
                yield from self._asked(each, parts=parts)
        elif is_name(token):
            whole = fold(token)
            yield Term(token, (whole,), prefix=len(whole) > 2)
            if parts:
                for piece in _parts(token):
                    if len(piece) > 2 or not piece.isdecimal():  # a single digit says nothing about the name
                        yield Term(piece, self._stems(piece), PART)
        elif token.isdecimal() or "," in token:
            yield Term(token, (fold(token).replace(",", ""),))
        elif _is_paired(token):
            yield from (Term(pair, (pair,), prefix=len(pair) == 1) for pair in _pairs(token, asked=True))
        else:
            for piece in _PIECE.findall(_unapostrophed(token)):
                yield Term(piece, self._stems(piece), prefix=len(piece) >= _LONG)

    def _is_stop(self, token: str, at: int, tokens: list[str]) -> bool:
        if at and (token in _MONTHLY or (len(token) > 1 and token.isupper() and not tokens[0].isupper())):
            return False  # a name: May, WHO, IT, US
        return fold(token).replace("'", "") in self._stops or fold(token).removesuffix("'s") in self._stops

    # ------------------------------------------------------------------ terms of a token

    def made_of(self, token: str) -> tuple[str, ...]:
        """Return the index terms of one token, without the cache."""
        if token.isdecimal() and token.isascii():
            return (token,)
        if _is_paired(token):
            return tuple(_pairs(fold(token)))
        if "," in token:
            return (token.replace(",", ""),)
        if " " in token:
            return (*chain.from_iterable(map(self.made_of, token.split())), fold(token))
        if is_name(token):
            parts = chain.from_iterable(map(self._stems, _parts(token)))
            return (*parts, fold(token))
        return tuple(chain.from_iterable(map(self._stems, _PIECE.findall(_unapostrophed(token)))))

    def _stems(self, word: str) -> tuple[str, ...]:
        """Return the terms of a word, one for each language of its script, without repeats."""
        lower = unicodedata.normalize("NFC", word).casefold()
        if lower.isdecimal() or _DIGIT.search(lower):
            return (fold(lower),)
        script = "LATIN" if lower.isascii() else unicodedata.name(lower[0], "").partition(" ")[0]
        named = _SCRIPTS.get(script)
        found: dict[str, None] = {}
        for language, stem in self._stemmers.items():
            if language not in named if named else language in _OTHER_SCRIPTS:
                continue
            if language == "english":
                plain = fold(lower)
                root: str = stem(_IRREGULAR.get(plain, plain))
                found[root[:-1] if root[-1:] == "i" and len(root) >= _LONG else root] = None
            else:
                found[fold(stem(lower))] = None
        return tuple(found) or (fold(lower),)


def fold(text: str) -> str:
    """Return a text with case and diacritics folded; of the Cyrillic letters only ё is folded.

    >>> fold("Straße Ångström Ёлка")
    'strasse angstrom елка'
    """
    if text.isascii():
        return text.casefold()
    lower = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
    kept = lower.replace("й", "\ue000").replace("ї", "\ue001")
    bare = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", kept)))
    return bare.replace("\ue000", "й").replace("\ue001", "ї")


def asked_fields(text: str) -> list[tuple[str, str]]:
    """Return the filters in a question.

    >>> asked_fields('refunds tag:billing scope:"the shop"')
    [('tag', 'billing'), ('scope', 'the shop')]
    """
    return [(field, value.strip('"')) for field, value in _ASKED_FIELD.findall(text)]


def remaining(text: str) -> str:
    """Return a question without its filters."""
    return _ASKED_FIELD.sub(" ", text)


def is_name(token: str) -> bool:
    """Return True if a token looks like an id, a key, a code, a version or a path, and not like a word or a plain number.

    >>> [token for token in ("ERR-404", "v1.2.3", "two-factor", "getUserName", "2024") if is_name(token)]
    ['ERR-404', 'v1.2.3', 'getUserName']
    """
    if token.isalpha():
        return _HUMP.search(token) is not None
    if token.isdecimal() or "," in token or _is_paired(token):
        return False
    return bool(_DIGIT.search(token) or _JOINED.search(token) or ("-" in token and token.isupper()))


def spoken(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the tokens of a text with their places: start, end, and the token in compatible forms."""
    for found in _TOKEN.finditer(text):
        yield found.start(), found.end(), unicodedata.normalize("NFKC", found[0])


def _tokens(text: str) -> Iterable[str]:
    return _TOKEN.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))


def _parts(token: str) -> Iterator[str]:
    """Yield the parts of a name: the words between its marks, humps and numbers."""
    for piece in _PIECE.findall(_unapostrophed(token)):
        if _HUMP.search(piece):
            yield from _CAMEL.findall(piece)
        elif (mixed := _MIXED.fullmatch(piece)) is not None:
            if piece != token:
                yield piece
            yield from (part for part in mixed.groups() if part and (len(part) > 1 or part.isdecimal()))
        elif piece != token:
            yield piece


def _unapostrophed(token: str) -> str:
    """Return a word without `'s`, and with other apostrophes resolved as in speech: `dont` for `don't`, `l homme` for `l'homme`."""
    plain = token.replace("’", "'")
    if "'" not in plain:
        return token
    plain = plain.removesuffix("'s").removesuffix("'S")
    return plain.replace("n't", "nt").replace("N'T", "NT")


def _is_paired(token: str) -> bool:
    return _PAIRED_START.match(token) is not None


def _pairs(token: str, *, asked: bool = False) -> Iterator[str]:
    """Yield the pairs of characters of a text without spaces, and its last character; for a question (`asked`) only the pairs."""
    if len(token) > 1:
        yield from map("".join, pairwise(token))
    if not asked or len(token) == 1:
        yield token[-1]
