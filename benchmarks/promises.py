"""The promises of what the store costs at most, in the order of the first table.

A row of the benchmarks names its promise and has the limits. `report.promised` prints each promise once, with its worst row.
"""

NODE = "node, with content"
HOPS = "one hop; what_superseded of 5; causes of 3"
DEEP = "node, hop of a node with 10,000 versions or links in its past"
WRITE = "a durable add, event, revise, supersede"
REACH = "a write, by what it reaches: a notebook; 20,000; a hub of 100,000"
RECOMPUTE = "a recheck or undo that recomputes: a notebook; a web of 20,000; a chain of 10,000"
BATCH = "each of 1,000 writes in one transaction"
WRITERS = "durable adds of 4 processes, without a server"
BULK = "bulk of 137,500 rows, words, graph tables and close included"
START_UP = "`python -c`: import, open, one read; the open itself"
FIRST_ANSWER = "`graphstore get`; `graphstore mcp`: the first answer"
MEMORY = "anonymous memory: open and one read; after a search; after a view.query"
CLOSE = "close: after one write; after a load"
GRAPH = "view.query, the first of a view; the first query_tables"
ARROW = "the whole view at T to Arrow"
SEARCH = "search: at now; at an unseen coordinate; the first of a process; at now after a write"
POSTGRES = "over PostgreSQL: node; add; writers at once"
EVENTS = "append of an event; history of 90 days; patterns; eviction; their size"

REASONS: dict[str, str] = {}
"""Why a promise is missed, in one sentence. The first table prints it. Write it after a run that shows the miss."""

ORDER = [value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str)]
