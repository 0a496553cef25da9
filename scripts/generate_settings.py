"""docs/settings.md: settings and commands, from the code that reads them."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import click
import orjson
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from agui_bridge.cli import main
from agui_bridge.settings import Settings
from runtime.providers import keys
from scripts.generate_markdown import NOTE, code, table

_NAMES: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    SecretStr: "text",
}


def page(_: str) -> str:
    """The page."""
    settings = [
        (code(name), code(variable(name)), _kind(field.annotation), _default(field), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    commands = [(code(_usage(name, command)), command.get_short_help_str(200)) for name, command in _commands()]
    options = [
        (code(option.opts[0]), ", ".join(code(name) for name in names), option.help or "")
        for option, names in _options()
    ]
    return "\n".join(
        [
            NOTE,
            "",
            "# Settings",
            "",
            "Each setting is an environment variable and a field of `agui_bridge.Settings`. A command line option wins "
            "over the",
            "environment, the environment over the default. In Python you pass them: "
            "`create_app(agent, settings=Settings(max_rounds=9))`.",
            "",
            table(("name", "variable", "kind", "default", "meaning"), settings),
            "",
            "The SDKs read variables of their own:",
            "",
            table(("variables", "for the models"), _sdk_variables()),
            "",
            "## Commands",
            "",
            table(("command", "what it does"), commands),
            "",
            table(("option", "of", "meaning"), options),
            "",
        ]
    )


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{Settings.model_config.get('env_prefix', '')}{name}".upper()


def _kind(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(code(str(choice)) for choice in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(each) for each in get_args(annotation) if each is not type(None))
    if origin is list:
        return "JSON list of texts"
    return _NAMES[annotation]


def _default(field: FieldInfo) -> str:
    value = typing.cast("object", field.get_default(call_default_factory=True, validated_data={}))
    if value is None:
        return "none"
    return code(value if isinstance(value, str) else orjson.dumps(value).decode())


def _sdk_variables() -> list[tuple[str, str]]:
    """The variables of each provider's SDK: its key, and the address where it asks."""
    return [
        (f"{code(key)}, {code(key.replace('_API_KEY', '_BASE_URL'))}", ", ".join(code(name) for name in models))
        for key, models in keys().items()
    ]


def _commands() -> list[tuple[str, click.Command]]:
    assert isinstance(main, click.Group)
    return list(_below(main, ""))


def _below(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _below(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _usage(name: str, command: click.Command) -> str:
    arguments = [str(param.metavar) for param in command.params if isinstance(param, click.Argument)]
    return " ".join(["agui-bridge", name, *arguments])


def _options() -> list[tuple[click.Option, list[str]]]:
    """Each option once, with the commands that have it; the longest help counts."""
    found: dict[str, tuple[click.Option, list[str]]] = {}
    for name, command in _commands():
        for param in command.params:
            if isinstance(param, click.Option):
                known, names = found.get(param.opts[0], (param, []))
                better = param if len(param.help or "") > len(known.help or "") else known
                found[param.opts[0]] = (better, [*names, name])
    return list(found.values())
