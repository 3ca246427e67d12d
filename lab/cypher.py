"""Cypher texts for a fuzzer, by a seed: right ones, broken ones, deep ones, wide ones, and those known to end or to hang an engine."""

from __future__ import annotations

import random

_WORDS = (
    "MATCH OPTIONAL WHERE RETURN WITH UNWIND UNION ALL AS ORDER BY SKIP LIMIT DISTINCT CASE WHEN THEN ELSE END NOT AND OR XOR IN IS NULL EXISTS "
    "COUNT CALL CREATE SET DELETE COPY LOAD FROM n m r p a b ( ) [ ] { } , . : ; | - -> <- * + / % ^ = <> < <= > >= .. 'x' \"y\" `z` $p 0 1 -1 "
    "1e308 9223372036854775807 99999999999999999999 true false null // /* */ ! & # @ \\ ~ ? ü 日 \u200b \x00 \ud7ff"
).split(" ")
_TYPES = (
    "INT8 INT16 INT32 INT64 INT128 UINT8 UINT64 DOUBLE FLOAT BOOL STRING DATE TIMESTAMP TIMESTAMP_NS TIMESTAMP_MS TIMESTAMP_SEC TIMESTAMP_TZ "
    "INTERVAL BLOB UUID SERIAL DECIMAL(38,37) INT64[] DATE[][] STRUCT(a\xa0INT64) MAP(STRING,INT64) UNION(a\xa0INT64) INT64[3] ANY NODE REL"
).split(" ")
_ONE = (
    "abs", "size", "lower", "upper", "date", "timestamp", "interval", "blob", "uuid", "reverse", "to_json", "typeof", "hash", "md5", "sqrt", "ln",
    "factorial", "to_years", "to_timestamp", "list_sort", "list_sum", "list_distinct", "keys", "map_keys", "label", "id", "nodes", "rels",
    "properties", "length", "gamma", "chr", "initcap", "even", "last_day", "dayname", "to_epoch_ms", "epoch_ms", "cbrt", "list_any_value", "is_trail",
)  # fmt: skip
_MANY = (
    "range", "repeat", "lpad", "levenshtein", "regexp_replace", "regexp_matches", "regexp_extract_all", "list_concat", "list_slice", "substring",
    "coalesce", "concat", "greatest", "date_trunc", "date_part", "make_date", "array_cosine_similarity", "list_contains", "map", "struct_extract",
    "union_value", "split_part", "string_split", "list_append", "ifnull", "nullif", "array_value", "element_at", "bitshift_left", "round", "atan2",
    "list_transform", "list_filter", "list_reduce", "error", "pow", "decode", "encode", "struct_pack", "json_extract", "cast",
)  # fmt: skip
_AGGREGATES = ("count", "sum", "avg", "min", "max", "collect")
_KINDS = ("SUPERSEDES", "DERIVED_FROM", "RELATED_TO", "CAUSED_BY", "NOTHING", "LINK")
_LABELS = ("Node", "Absent", "Event", "Version", "Op", "Nobody")
_FIELDS = ("id", "kind", "text", "tags", "number", "valid_from", "valid_to", "tx_from", "content", "nothing")
_STRINGS = (
    "''", "'a'", "'12000-01-01'", "'9999-12-31'", "'-1'", "'nan'", "'[1,2'", "'{\"a\":1}'", "'300000 years'", "'1 year'", "'(a+)+$'", "'\\\\xFF'",
    "'ü日'", "'" + "x" * 3000 + "'", "'day'", "'%'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'9999-12-31 23:59:59.999999'",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "2", "7", "127", "128", "-128", "1000", "1000000", "300000000", "2147483648", "9223372036854775807", "1e308", "0.1",
)  # fmt: skip


class _Texts:
    """A grammar that a source of chance walks."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def pick(self, of: tuple[str, ...] | list[str]) -> str:
        return self.chance.choice(of)

    def value(self, depth: int) -> str:
        """An expression."""
        roll = self.chance.random()
        if depth <= 0 or roll < 0.3:
            return self.pick(
                [
                    self.pick(_NUMBERS),
                    self.pick(_STRINGS),
                    f"n.{self.pick(_FIELDS)}",
                    "n",
                    "null",
                    "true",
                    "x",
                    "$p",
                ]
            )
        deeper = depth - 1
        if roll < 0.45:
            return f"{self.pick(_ONE)}({self.value(deeper)})"
        if roll < 0.60:
            return f"{self.pick(_MANY)}({', '.join(self.value(deeper) for _ in range(self.chance.randint(1, 3)))})"
        if roll < 0.68:
            sign = self.pick(
                ["+", "-", "*", "/", "%", "^", "=", "<>", "<", "AND", "OR", "XOR", "IN", "STARTS WITH", "=~"]
            )
            return f"({self.value(deeper)} {sign} {self.value(deeper)})"
        if roll < 0.74:
            return f"CASE WHEN {self.value(deeper)} THEN {self.value(deeper)} ELSE {self.value(deeper)} END"
        if roll < 0.80:
            return f"cast({self.value(deeper)} AS {self.pick(_TYPES)})"
        if roll < 0.85:
            return f"[{', '.join(self.value(deeper) for _ in range(self.chance.randint(0, 4)))}]"
        if roll < 0.89:
            return f"{{a: {self.value(deeper)}, b: {self.value(deeper)}}}"
        if roll < 0.92:
            return f"list_transform({self.value(deeper)}, x -> {self.value(deeper)})"
        if roll < 0.95:
            return f"{self.pick(_AGGREGATES)}({self.pick(['', 'DISTINCT '])}{self.value(deeper)})"
        if roll < 0.97:
            return f"NOT {self.value(deeper)}"
        return f"EXISTS {{ {self.pattern()} WHERE {self.value(deeper)} }}"

    def pattern(self) -> str:
        """MATCH with a few relationships."""
        text = f"MATCH (n:{self.pick(_LABELS)})"
        for number in range(self.chance.choice((0, 0, 1, 1, 2, 4))):
            hops = self.pick(["", "", "* 1..2", "*", "* TRAIL 1..5", "* SHORTEST 1..5", "* 1..30"])
            kind = self.pick(["", f":{self.pick(_KINDS)}"])
            text += f"-[r{number}{kind}{hops}]-{self.pick(['', '>'])}(m{number})"
        return text

    def clause(self, depth: int) -> str:
        """One clause."""
        return self.pick(
            [
                self.pattern(),
                f"{self.pattern()} WHERE {self.value(depth)}",
                f"OPTIONAL {self.pattern()}",
                f"UNWIND {self.value(depth)} AS x",
                f"WITH {self.value(depth)} AS x",
                f"WITH *, {self.value(depth)} AS y{self.chance.randint(0, 99)}",
                "UNWIND range(1, 1000) AS z UNWIND range(1, 1000) AS w UNWIND range(1, 1000) AS v",
                "CALL show_tables()",
            ]
        )

    def query(self) -> str:
        """A whole text."""
        depth = self.chance.choice((1, 2, 3, 4, 6, 9))
        clauses = [self.clause(depth) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        items = ", ".join(f"{self.value(depth)} AS c{at}" for at in range(self.chance.choice((1, 1, 2, 5))))
        text = " ".join([*clauses, f"RETURN {self.pick(['', 'DISTINCT '])}{items}"])
        if self.chance.random() < 0.3:
            text += f" ORDER BY c0 SKIP {self.pick(_NUMBERS)} LIMIT {self.pick(_NUMBERS)}"
        if self.chance.random() < 0.1:
            text += f" {self.pick(['UNION', 'UNION ALL'])} {text}"
        return text

    def deep(self) -> str:
        """One thing within itself, often to the edge of what is allowed and beyond."""
        times = self.chance.choice((7, 8, 9, 16, 30, 32, 33, 60, 64, 65, 100, 255, 500, 2_000, 20_000))
        opening, closing = self.chance.choice(
            (
                ("[", "]"), ("(", ")"), ("{a: ", "}"), ("abs(", ")"), ("NOT ", ""), ("- ", ""), ("CASE WHEN true THEN ", " END"),
                ("CASE WHEN false THEN 1 ELSE ", " END"), ("CASE WHEN ", " THEN true END"), ("cast(", " AS INT64)"), ("list_transform([1], x -> ", ")"),
                ("EXISTS { MATCH (n:Node) WHERE ", " }"), ("[{a: ", "}]"), ("-(", ")"), ("NOT (", ")"), ("coalesce(1, ", ")"), ("/*", "*/"), ("`", "`"),
            )
        )  # fmt: skip
        return f"RETURN {opening * times}1{closing * times} AS x"

    def wide(self) -> str:
        """One thing beside itself."""
        times = self.chance.choice((10, 100, 255, 257, 1_000, 2_400, 4_900, 6_000, 50_000))
        head, each, tail = self.chance.choice(
            (
                ("RETURN 1", " + 1", ""), ("RETURN true", " AND true", ""), ("MATCH (n:Node) WHERE n.number = 1", " OR n.number = 2", " RETURN n"),
                ("RETURN [1", ", 1", "]"), ("RETURN 1", ", 1", ""), ("RETURN 1 AS a", " UNION ALL RETURN 1 AS a", ""), ("", "MATCH (n:Node) ", "RETURN 1"),
                ("", "WITH 1 AS a ", "RETURN a"), ("MATCH (n)", "--()", " RETURN 1"), ("RETURN 'a'", " + 'b'", ""), ("RETURN CASE", " WHEN false THEN 1", " END"),
                ("RETURN [1]", "[1:1]", ""), ("RETURN cast(null AS INT64", "[]", ")"), ("RETURN 1 ", "/* x */", ""), ("RETURN '", "ab\\\\", "'"),
                ("RETURN {a: 1", ", a: 1", "}"), ("MATCH (n:Node", ":Node", ") RETURN n"), ("MATCH (n)-[:A", "|A", "]->() RETURN n"),
                ("UNWIND [1] AS a ", "UNWIND [1, 2] AS b ", "RETURN a"), ("RETURN 1 IN [1]", " IN [true]", ""), ("RETURN ", "\n", "1"),
            )
        )  # fmt: skip
        return head + each * times + tail

    def broken(self) -> str:
        """A query with pieces lost, doubled, or put in; or words in no order."""
        if self.chance.random() < 0.3:
            return " ".join(self.pick(_WORDS) for _ in range(self.chance.randint(1, 60)))
        text = self.query()
        for _ in range(self.chance.randint(1, 4)):
            at = self.chance.randrange(len(text) + 1)
            to = at + self.chance.randint(0, 8)
            text = text[:at] + self.pick(["", self.pick(_WORDS), text[at:to] * 2]) + text[to:]
        return text


def text_of(chance: random.Random) -> str:
    """A text."""
    texts = _Texts(chance)
    return chance.choice(
        (texts.query, texts.query, texts.query, texts.broken, texts.broken, texts.deep, texts.wide)
    )()
