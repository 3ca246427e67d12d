"""Hooks of coding agents: a briefing when a session starts, an import of the session when it ends.

`change` writes them into the settings of a tool and removes them again. `run` is what the tool calls: it never fails, ends in time, and answers in the form
that all three tools read.
"""

import json
import os
import re
import shlex
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from graphstore.cli.command_rows import CommandRun


class HookedTool(NamedTuple):
    """A coding agent. `client`: the name that it gives as an MCP client; `home`: the variable with its folder, by default `folder` in the home folder; `file`: its
    settings there; `end`: the event at the end of a session, or of a turn where there is none; `second`: its unit of time limits, in parts of a second."""

    client: str
    home: str
    folder: str
    file: str
    end: str
    second: int = 1


TOOLS = {
    "claude-code": HookedTool("claude-code", "CLAUDE_CONFIG_DIR", ".claude", "settings.json", "SessionEnd"),
    "codex": HookedTool("codex-mcp-client", "CODEX_HOME", ".codex", "hooks.json", "Stop"),
    "gemini": HookedTool("gemini-cli-mcp-client", "", ".gemini", "settings.json", "SessionEnd", 1_000),
}
RUNS = {"start": 10.0, "end": 5.0, "import": 600.0}
"""What a tool, or a hook itself, runs: the seconds after which each ends, whether it is done or not."""
_PATIENCE = 15  # seconds that the tool waits for a hook
_OURS = re.compile(rf"\bgraphstore(\.exe)?['\"]? hook ({'|'.join(TOOLS)}) (start|end)\b")
_UNQUOTED = re.compile(r"[A-Za-z0-9_@+=:,./~-]+")
_LOG_BYTES = 1 << 20


# ---------------------------------------------------------------- settings


def change(asked: "CommandRun") -> Any:
    """Write the hooks of a tool into its settings, or remove them. Shows what changed."""
    from difflib import unified_diff

    from graphstore.cli import common
    from graphstore.errors import InvalidError

    tool, action, project, user, store = asked.pop("tool", "action", "project", "user", "memory")
    if project is not None and user:
        raise InvalidError("--project and --user name two settings. Give one of them.")
    if project is not None and not project.is_dir():
        raise InvalidError(f"{project} is no folder. Give the folder of the project.")
    file = settings_file(tool, project)
    notes = _notes(tool, file) if action == "install" else []
    text = _read(file)
    place = common.place_of(store or (project or Path.home()) / "memory.gs")
    place = place if "://" in place else str(Path(place).absolute())
    try:
        after = settings_with_hooks(text, tool, place) if action == "install" else _without_hooks(text)
    except InvalidError as error:
        raise InvalidError(
            f"{file} cannot be changed: {error} Nothing was written. Correct it, or move it away."
        ) from None
    changed = after != text
    if changed:
        _write(file, after)
    diff = "".join(unified_diff(_lines(text), _lines(after), str(file), str(file)))
    what = f"{file} {'has the hooks' if action == 'install' else 'has no hooks of graphstore'}{'' if changed else ' already'}."
    asked.words = "\n".join([*([diff.rstrip("\n")] if diff else []), what, *notes])
    return {
        "file": str(file),
        "changed": changed,
        "diff": diff,
        "store": place if action == "install" else None,
        "notes": notes,
    }


def settings_file(tool: str, project: Path | None) -> Path:
    """Return the file with the hooks of a tool, of a project or of the user."""
    known = TOOLS[tool]
    if project is not None:
        return project.absolute() / known.folder / known.file
    home = os.environ.get(known.home) if known.home else None
    return (Path(home) if home else Path.home() / known.folder) / known.file


def _read(file: Path) -> str:
    """Return the text of a file; empty if there is none. Raises InvalidError for an empty file, and for what cannot be read as UTF-8."""
    from graphstore.errors import InvalidError

    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise InvalidError(
            f"{file} cannot be read as a text in UTF-8: {error}. Nothing was written."
        ) from None
    if not text.strip("\ufeff \t\r\n"):
        raise InvalidError(
            f"{file} is empty, which is no JSON. Write {{}} into it, or remove it. Nothing was written."
        )
    return text


def _write(file: Path, text: str) -> None:
    """Replace a file whole, with the rights that it had; remove it for an empty text. A link to it stays one."""
    file = Path(os.path.realpath(file))
    if not text:
        file.unlink()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(text.encode("utf-8"))
        if file.exists():
            fresh.chmod(file.stat().st_mode)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


def settings_with_hooks(text: str, tool: str, store: str) -> str:
    """Return the text of settings with the hooks of a tool: unchanged if they are there already."""
    from graphstore.cli import json_edits

    mark, text = text[:1] if text.startswith("\ufeff") else "", text.removeprefix("\ufeff")
    wanted = {
        event: {"hooks": [_handler(tool, run, store)]}
        for event, run in (("SessionStart", "start"), (TOOLS[tool].end, "end"))
    }
    found = json_edits.parsed(text).value if text else {}
    there = found.get("hooks") if isinstance(found, dict) else None
    groups = there if isinstance(there, dict) else {}
    if all(group in (groups.get(event) or []) for event, group in wanted.items()):
        return mark + text
    text = json_edits.without_items(text, _is_ours) if text else ""
    for event, group in wanted.items():
        text = json_edits.with_item(text, ["hooks", event], group)
    return mark + text


def _without_hooks(text: str) -> str:
    from graphstore.cli import json_edits

    mark, text = text[:1] if text.startswith("\ufeff") else "", text.removeprefix("\ufeff")
    left = json_edits.without_items(text, _is_ours) if text.strip() else text
    return mark + left if left else ""


def _is_ours(item: Any) -> bool:
    """Return True for the handler of a hook that `change` wrote."""
    command = item.get("command") if isinstance(item, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def _handler(tool: str, run: str, store: str) -> dict[str, Any]:
    command = command_line([*_program(), "hook", tool, run, store], is_windows=os.name == "nt")
    limit = {"type": "command", "command": command, "timeout": _PATIENCE * TOOLS[tool].second}
    return {"name": f"graphstore {run}", **limit} if tool == "gemini" else limit


def _program() -> list[str]:
    """Return the words that start graphstore from any folder: the script beside this Python, else its module."""
    script = Path(sys.executable).with_name("graphstore.exe" if os.name == "nt" else "graphstore")
    return [str(script)] if script.exists() else [sys.executable, "-m", "graphstore"]


def command_line(words: list[str], *, is_windows: bool) -> str:
    """Return words as one command line: for a POSIX shell, or such that cmd, PowerShell and Git's bash read the same on Windows.

    Raises InvalidError for a word that these would read differently.
    """
    if not is_windows:
        return shlex.join(words)
    from graphstore.errors import InvalidError

    said = []
    for place, word in enumerate(word.replace("\\", "/") for word in words):
        if _UNQUOTED.fullmatch(word):
            said.append(word)
        elif place == 0 or set(word) & set("\"$`%!&|<>^'\n"):
            # a quoted program is a text to PowerShell, and cmd takes the first and the last quote away
            raise InvalidError(
                f"{word!r} has characters that the shells of Windows read differently. Give a path of letters and digits."
            )
        else:
            said.append(f'"{word}"')
    return " ".join(said)


def _notes(tool: str, file: Path) -> list[str]:
    """Return what the user has to do, or to know, before the hooks run. Raises InvalidError for a configuration that cannot be read."""
    if tool != "codex":
        return []
    import tomllib

    from graphstore.errors import InvalidError

    notes = ["Codex runs a new hook once you trust it: type /hooks in Codex."]
    with suppress(FileNotFoundError):
        try:
            features = tomllib.loads(file.with_name("config.toml").read_text(encoding="utf-8")).get(
                "features", {}
            )
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidError(
                f"{file.with_name('config.toml')} cannot be read: {error}. Correct it: Codex reads it too."
            ) from None
        if isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False:
            notes.append("Its config.toml switches hooks off: set hooks = true in [features].")
    return notes


def _lines(text: str) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]


# ---------------------------------------------------------------- run by the tools


def run(tool: str = "", what: str = "", *words: str) -> NoReturn:
    """Do what a hook is called for, and end the process with exit code 0, whatever happens and at the latest after its time."""
    answer, failed = ["{}"], [f"it took more than {RUNS[what]:g} s"]

    def work() -> None:
        try:
            done: Any = {"start": _start, "end": _end, "import": _import}[what]
            answer[0] = json.dumps(done(tool, *words))
            failed.clear()
        except BaseException as error:
            failed[0] = f"{type(error).__name__}: {error}"

    worker = threading.Thread(target=work, daemon=True)
    with suppress(BaseException):
        worker.start()
        worker.join(RUNS[what])
    for why in failed:
        _log(f"hook {tool} {what}: {why}")
        with suppress(Exception):
            print(
                f"graphstore: no {'briefing' if what == 'start' else 'import'}: {why}",
                file=sys.stderr,
                flush=True,
            )
    with suppress(Exception):
        print(answer[0], flush=True)
    os._exit(0)


def _payload() -> dict[str, Any]:
    """Return what the tool says of the session, on standard input."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    found = json.loads(sys.stdin.buffer.read() or b"{}")
    return found if isinstance(found, dict) else {}


def _start(tool: str, store: str) -> Any:
    """Return the briefing as additional context of the session."""
    from graphstore.cli import common

    folder = _payload().get("cwd")
    path = Path(store)
    if "://" not in common.place_of(path) and not path.exists():
        text = f"There is no memory at {store} yet. It is made when this session ends, or by: graphstore init {shlex.quote(store)}\n"
    else:
        with common.open_store(path, author=TOOLS[tool].client) as opened:
            text = opened.brief(
                TOOLS[tool].client, project=folder if isinstance(folder, str) and folder else None
            ).text
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def _end(tool: str, store: str) -> Any:
    """Import the session in a process of its own: tools end hooks within seconds, and wait for those that hold their output open."""
    import subprocess

    transcript = _payload().get("transcript_path")
    if isinstance(transcript, str) and transcript and Path(transcript).expanduser().is_file():
        words = [sys.executable, "-m", "graphstore", "hook", tool, "import", store, transcript]
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
        none = subprocess.DEVNULL
        subprocess.Popen(words, stdin=none, stdout=none, stderr=none, close_fds=True, **apart)
    return {}


def _import(tool: str, store: str, transcript: str) -> Any:
    """Import one session file. What `ingest` does to a text before it records it, such as redaction, is done to these too."""
    from graphstore.cli import common
    from graphstore.sessions import sessions

    with common.open_store(Path(store), author=TOOLS[tool].client, create=True) as opened:
        done = sessions.ingest(opened, transcript)
    for each in done.sessions:
        if each.error:
            _log(f"hook {tool} import {transcript}: {each.error}")
    return {}


def _log(text: str) -> None:
    """Add a line to the log of hooks, which is begun again at a megabyte. Never fails."""
    with suppress(Exception):
        file = log_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        is_long = file.exists() and file.stat().st_size > _LOG_BYTES
        with file.open("w" if is_long else "a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {' '.join(text.split())}\n")


def log_file() -> Path:
    """Return the file in which hooks note their failures."""
    state = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "graphstore" / "hook.log"
