"""Where the options of a server come from: the command line, else the environment, else a file, else what is usual."""

from pathlib import Path
from typing import Any

import typer

_TABLE = "serve"
_APART = ("store", "config", "print_config", "show_token")  # they are no settings


def from_file(ctx: typer.Context, file: Path | None) -> Path | None:
    """Take the options that a file gives as the usual ones. Raises typer's error for one that is no such file, or names what is none."""
    if file is None or ctx.resilient_parsing:
        return file
    import tomllib

    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}.") from None
    unknown = found.keys() - {_TABLE}
    values = found.get(_TABLE, {})
    if unknown or not isinstance(values, dict):
        raise typer.BadParameter(f"{file} is to have one table, [{_TABLE}]{_other(unknown)}.")
    known = _names(ctx)
    given = {name.replace("-", "_"): value for name, value in values.items()}
    if wrong := given.keys() - known:
        raise typer.BadParameter(
            f"{file} names {min(wrong)!r}, which is no option of serve. Valid: {', '.join(sorted(known))}."
        )
    several = {each.name for each in ctx.command.params if getattr(each, "multiple", False)}
    for name, value in given.items():
        if isinstance(value, dict) or (isinstance(value, list) and name not in several):
            raise typer.BadParameter(f"{file} gives {name} {value!r}. Give one value.")
        if name in several and not isinstance(value, list):
            given[name] = [value]
    ctx.default_map = {**(ctx.default_map or {}), **given}
    return file


def shown(ctx: typer.Context) -> list[str]:
    """Each option with its value and where that is from, a line each, in the form of the file."""
    sources = {
        "COMMANDLINE": "command line",
        "ENVIRONMENT": "environment",
        "DEFAULT_MAP": f"{ctx.params.get('config')}",
        "DEFAULT": "default",
    }
    lines = [f"[{_TABLE}]"]
    for name in sorted(_names(ctx)):
        source = ctx.get_parameter_source(name)
        line, where = _toml(name, ctx.params[name]), sources.get(source.name if source else "", "default")
        lines.append(f"{line}  # {where}")
    return lines


def _names(ctx: typer.Context) -> set[str]:
    return {each.name for each in ctx.command.params if each.name and each.name not in _APART}


def _other(unknown: set[str]) -> str:
    return f", not {min(unknown)!r}" if unknown else ""


def _toml(name: str, value: Any) -> str:
    if value is None:
        return f"# {name} ="
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, int | float):
        return f"{name} = {value}"
    if isinstance(value, list | tuple):
        return f"{name} = [{', '.join(_text(each) for each in value)}]"
    return f"{name} = {_text(value)}"


def _text(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
