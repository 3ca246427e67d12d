"""Word lists of the built-in analyser: languages, frameworks, topics, kinds of error, and words in requests. It contains tables and no logic."""

from __future__ import annotations

import re
from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    "py": "python", "pyi": "python", "ipynb": "python", "ts": "typescript", "tsx": "typescript", "mts": "typescript", "cts": "typescript",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "svelte": "typescript", "vue": "typescript",
    "rs": "rust", "go": "go", "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "swift": "swift", "rb": "ruby",
    "php": "php", "cs": "c#", "fs": "f#", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "cxx": "c++", "hpp": "c++", "zig": "zig",
    "ex": "elixir", "exs": "elixir", "erl": "erlang", "hs": "haskell", "ml": "ocaml", "clj": "clojure", "lua": "lua", "r": "r",
    "jl": "julia", "dart": "dart", "sh": "shell", "bash": "shell", "zsh": "shell", "fish": "shell", "ps1": "powershell",
    "pl": "perl", "nix": "nix", "sol": "solidity", "html": "html", "css": "css", "scss": "css", "cypher": "cypher",
}  # fmt: skip
MANIFESTS: Mapping[str, str] = {
    "tsconfig.json": "typescript", "package.json": "javascript", "pyproject.toml": "python", "setup.py": "python",
    "requirements.txt": "python", "cargo.toml": "rust", "go.mod": "go", "pom.xml": "java", "build.gradle": "java",
    "gemfile": "ruby", "composer.json": "php", "mix.exs": "elixir", "package.swift": "swift", "pubspec.yaml": "dart",
}  # fmt: skip
FRAMEWORKS_BY_NAME: Mapping[str, str] = {
    "svelte.config": "svelte", "next.config": "next", "nuxt.config": "nuxt", "vite.config": "vite", "vitest.config": "vitest",
    "jest.config": "jest", "playwright.config": "playwright", "tailwind.config": "tailwind", "astro.config": "astro",
    "angular": "angular", "remix.config": "remix", "manage": "django", "conftest": "pytest", "webpack.config": "webpack",
    "dockerfile": "docker", "docker-compose": "docker", "biome": "biome", "eslint.config": "eslint",
}  # fmt: skip
"""Frameworks by file name without its last extension."""
FRAMEWORKS_BY_EXTENSION: Mapping[str, str] = {"svelte": "svelte", "vue": "vue", "tsx": "react", "jsx": "react", "tf": "terraform", "astro": "astro"}  # fmt: skip

DOCUMENTS = frozenset({"md", "mdx", "rst", "txt", "adoc", "tex"})
SETTINGS = frozenset({"json", "jsonc", "json5", "yaml", "yml", "toml", "ini", "cfg", "conf", "env", "properties", "lock", "tf", "nix"})  # fmt: skip
SETTING_NAMES = frozenset(
    {"dockerfile", "makefile", ".gitignore", ".npmrc", ".editorconfig", ".dockerignore", ".env"}
)
DATA = frozenset({"csv", "tsv", "sql", "parquet", "jsonl", "ndjson", "xlsx", "xml", "arrow"})
TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)\.[a-z]+$|_test\.[a-z]+$"
)
PLAN_FILE = re.compile(
    r"(?:^|/)[^/]*(?:plan|design|architecture|roadmap|rfc|adr)[^/]*\.[a-z]+$", re.IGNORECASE
)
HANDOFF_FILE = re.compile(r"hand-?_?off", re.IGNORECASE)

READING = frozenset({"read", "view", "notebookread", "readfile", "openfile", "readmanyfiles"})
WRITING = frozenset({"write", "edit", "multiedit", "notebookedit", "create", "writefile", "editfile", "applypatch", "strreplaceeditor", "replace", "patch"})  # fmt: skip
LOOKING = frozenset(
    {"grep", "glob", "find", "ls", "search", "webfetch", "websearch", "fetch", "task", "agent"}
)
SEARCHES = re.compile(
    r"(?:sudo |xargs )?(?:(?:git )?grep|egrep|fgrep|rg|ag|diff|cmp|which|command -v|type|test|\[{1,2}|pgrep)(?:\s|\Z)"
)
"""Commands that exit with 1 if they find nothing, or find a difference."""
LOOKS = re.compile(
    r"(?:ls|find|fd|head|tail|cat|less|wc|stat|file|tree|du|sed -n|(?:git )?grep|egrep|rg|ag)(?:\s|\Z)"
)
"""Commands that only look. Their failures do not hinder the work."""
RUNNING = frozenset({"bash", "shell", "exec", "runcommand", "powershell", "execcommand", "shellcommand", "localshell", "runshellcommand", "runinterminal"})  # fmt: skip
FILE_ARGUMENTS = tuple(
    "path file_path filePath notebook_path notebookPath absolute_path filename file".split()
)
MAIN_ARGUMENTS = (*FILE_ARGUMENTS, *"command cmd pattern query url prompt skill description".split())
"""The arguments that show what a call is about. The first one present counts."""

REQUESTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (type, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for type, words in (
        ("handoff", r"hand-?\s?off|hand(?:ing)? over|handover"),
        ("refactoring", r"refactor\w*|restructur\w*|clean\s?up|simplif(?:y|ied|ication)|untangle\w*|renam(?:e|ing)|dedup\w*|extract (?:a |the )?\w+"),
        ("debugging", r"fix(?:e[sd]|ing)?|bugs?|debug\w*|broken|crash\w*|fails?|failing|failed|errors?|exception|regression|not working|(?:doesn|isn|won)'?t work"),
        ("brainstorm", r"brainstorm\w*|ideas?|what if|think about|explore options"),
        ("planning", r"plan(?:s|ned|ning)?|design(?:s|ed|ing)?|architect\w*|roadmap|proposal|approach(?:es)?"),
        ("qa", r"review(?:s|ed|ing)?|tests?|testing|verif(?:y|ied|ication)|qa|coverage|audit\w*"),
        ("documentation", r"document(?:s|ed|ing|ation)?|docs|readme|changelog"),
        ("coding", r"add(?:s|ed|ing)?|implement\w*|creat(?:e|es|ed|ing)|writ(?:e|es|ing)|build(?:s|ing)?|support|mak(?:e|ing)|port(?:ing)?|introduce|extend"),
    )
)  # fmt: skip
"""Types of work by words in the request. The first match counts."""
CLEAR = re.compile(
    r"\b(?:fix|add|implement|create|write|build|refactor|rename|move|remove|delete|update|change|replace|install|configure|set ?up|run|test|"
    r"review|read|explain|find|check|investigate|document|port|migrate|deploy|commit|release|merge|make|use|convert|show|list|analy[sz]e|plan|"
    r"extract|debug|optimi[sz]e|clean|iterate)\b|[\w-]+/[\w./-]+|\b\w+\.[a-z]{1,5}\b|`[^`]+`|#\d+",
    re.IGNORECASE,
)
"""Patterns of a clear request: a verb that names an action, or a named path, file, code or issue."""
SYSTEM_COMMANDS = re.compile(
    r"(?:^|[;&|]\s*|\bsudo\s+)(?:systemctl|service|apt|apt-get|brew|yum|dnf|pacman|docker|kubectl|helm|ssh|scp|rsync|chmod|chown|mount|ufw|"
    r"iptables|nginx|crontab|journalctl|useradd|terraform|ansible\S*|launchctl|df|du|ps|top|kill|ip|netstat)\b"
)
TEST_COMMANDS = re.compile(r"\b(?:pytest|vitest|jest|mocha|tox|nox|(?:npm|yarn|pnpm|bun|cargo|go|make|mvn|gradle)\s+(?:run\s+)?test|playwright|rspec|phpunit)\b")  # fmt: skip

WARM_UP = re.compile(r"\W*warm[ -]?up\W*", re.IGNORECASE)
"""The message that a program sends to an agent which it starts ahead of work."""
PLEASED = re.compile(
    r"\b(?:thanks?|thank you|thx|great|perfect|awesome|excellent|nice|lgtm|looks good|well done|works(?! not)|working now|good job|"
    r"commit (?:it|this|and)|please commit|ship it|merge it|push it)\b",
    re.IGNORECASE,
)
DISPLEASED = re.compile(
    r"\b(?:still (?:broken|fail\w*|wrong|not|doesn'?t)|(?:doesn|does not|isn|is not|didn|did not|won|will not)'?t? work\w*|not working|"
    r"wrong|no,|nope|that'?s not|revert|undo)\b|\bwtf\b",
    re.IGNORECASE,
)
DROPPED = re.compile(
    r"\b(?:never ?mind|forget (?:it|about it|that)|abandon\w*|scrap (?:it|that|this)|give up|let'?s stop|drop (?:it|that|this)|not worth it)\b",
    re.IGNORECASE,
)

ERRORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("edit_mismatch", re.compile(r"could not find the exact|string to replace not found|old_?string|old text|must be unique|occurrences of|file has (?:not been read|been modified)|no changes made", re.I)),
    ("invalid_arguments", re.compile(r"InputValidationError|validation failed|invalid (?:tool )?(?:arguments?|parameters?|input)|missing required", re.I)),
    ("type_error", re.compile(r"error TS\d+|TypeError\b|incompatible type|is not assignable to", re.I)),
    ("permission", re.compile(r"EACCES|EPERM|permission denied|permission to use \w+ has been (?:auto-)?denied|operation not permitted|access (?:is )?denied|403 forbidden", re.I)),
    ("not_found", re.compile(r"ENOENT|no such file|file not found|does not exist|command not found|cannot find module|ModuleNotFoundError|path not found", re.I)),
    ("timeout", re.compile(r"ETIMEDOUT|timed out|timeout (?:of|exceeded|after)", re.I)),
    ("network", re.compile(r"ECONNREFUSED|ECONNRESET|ENOTFOUND|connection (?:refused|reset|error)|fetch failed|status code [45]\d\d", re.I)),
    ("syntax_error", re.compile(r"SyntaxError\b|parse error|unexpected token|unexpected end of", re.I)),
    ("lint", re.compile(r"^[ \t]*\d+:\d+[ \t]+(?:error|warning)[ \t]|✖ \d+ problems?|^\S+:\d+:\d+[ :]+lint/", re.M)),
    ("test_failure", re.compile(r"\b\d+ (?:tests? )?failed\b|AssertionError|^FAIL\b|^FAILED\b|tests? failed", re.I | re.M)),
    ("conflict", re.compile(r"CONFLICT \(|merge conflict|would be overwritten", re.I)),
    ("exception", re.compile(r"Traceback \(most recent|\b[A-Z]\w+(?:Error|Exception)\b|panicked at")),
)  # fmt: skip
"""Kinds of error, each with a pattern of its text. The first match counts."""
BROKEN = frozenset({"type_error", "syntax_error", "test_failure", "exception", "exit_code"})
"""Kinds of error in the code under work."""
NOISE = re.compile(
    r"^(?:Debugger attached\.|Waiting for the debugger to disconnect\.\.\.)[ \t]*\n?", re.MULTILINE
)
LINTED = re.compile(r"[ \t]*\d+:\d+[ \t]+(?:error|warning)[ \t]")
"""A finding of a linter. Its text quotes what it forbids, so other error patterns must not match it."""
SLIPS = frozenset({"edit_mismatch", "invalid_arguments", "not_found", "permission", "tool_error"})
"""Kinds of error caused by a malformed call."""
MISUSE = frozenset({"edit_mismatch", "invalid_arguments"})

TOPICS: Mapping[str, frozenset[str]] = {
    topic: frozenset(words.split())
    for topic, words in {
        "authentication": "auth authentication authorization login logout oauth jwt password session-cookie sso permissions credentials",
        "database": "database databases db sql sqlite postgres postgresql mysql mongo redis schema query queries migration migrations kuzu",
        "testing": "test tests testing pytest vitest jest mocha coverage fixture fixtures playwright",
        "documentation": "docs documentation readme changelog docstring docstrings tutorial",
        "build and tooling": "build builds bundler webpack vite esbuild compiler lint linter eslint biome ruff tsconfig makefile tooling",
        "deployment": "deploy deployment docker kubernetes container containers ci pipeline release releases nginx terraform",
        "user interface": "ui tui frontend css component components layout button render rendering terminal editor theme svelte react",
        "api": "api apis endpoint endpoints rest graphql rpc route routes webhook http",
        "performance": "performance slow latency fast faster benchmark benchmarks profiling memory cpu",
        "security": "security vulnerability encryption secret secrets sanitize xss csrf",
        "language models": "llm llms prompt prompts model models agent agents context compaction tokens claude gpt anthropic openai",
        "version control": "git commit commits branch branches merge rebase diff",
        "configuration": "config configuration settings setting env environment flags",
        "data processing": "csv parse parser parsing json jsonl pipeline etl dataset pandas",
    }.items()
}
CONCEPTS: Mapping[str, frozenset[str]] = {
    concept: frozenset(words.split())
    for concept, words in {
        "caching": "cache cached caches caching memoize",
        "concurrency": "concurrency concurrent parallel thread threads race lock locks mutex async await",
        "streaming": "stream streams streaming",
        "pagination": "pagination paginate cursor",
        "validation": "validate validation validator schema schemas",
        "serialization": "serialize serialization deserialize json jsonl encode decode",
        "error handling": "exception exceptions retry retries fallback",
        "recursion": "recursive recursion recursively",
        "types": "type types typing generics",
        "abstraction": "abstraction abstractions interface interfaces duplication decouple coupling",
        "events": "event events hook hooks callback listener subscribe",
        "versioning": "version versions versioning migration migrations",
        "indexing": "index indexes indices indexing",
        "logging": "log logs logging logger trace tracing",
        "state management": "state store stores reducer",
        "dependency management": "dependency dependencies package packages",
    }.items()
}
STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at back be because been before being both but by can could did do does doing don done
    down each even every few first for from further get gets getting give go going gonna got had has have having he her here him his how i if in
    into is it its just keep kind know let like look looks lot make makes making many maybe me mean might more most much must my need needs new
    no nor not now of off ok okay on once one only or other our out over own please put really right said same say see seems she should
    so some something sure take than that the their them then there these they thing things think this those though through to too try two under until up us
    use used using very want wants was way we well were what when where which while who why will with without work works would yeah yes yet
    you your dont doesnt isnt wont cant im ive id ill thats whats lets didnt wasnt were actually basically already able still file files
    code line lines add added change changes update read write run fix error errors user
    havent hasnt hadnt couldnt shouldnt wouldnt arent theres heres youre theyre weve youve theyve its itll youll gonna wanna gotta
    great perfect awesome nice cool good fine better best alright hello hello hi hey thanks thank thx lgtm yep nope sorry dude man guys
    fuck fucking fucked shit shitty damn crap wtf hell start started starting continue finish finished done back another anything nothing everything something
    rather instead least less bit bunch probably actual current available different little next last new still thinking tell told
    der die das und ist nicht ein eine ich du wir sie mit auf für von zu den im es auch""".split()
)  # fmt: skip
