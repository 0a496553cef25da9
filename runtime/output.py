"""How one run is asked for a value, and what follows from the answer to it.

Pure. `native`: the provider is given the schema, the answer's text is the value. `tool`: the model gives the value by
calling a tool of ours, for models and servers that know no schemas. The rules:

1. A value that fits ends the run. One that does not is told back to the model once, as the output of the call or, for
   a text, as a message that only the model sees. A second one fails the run.
2. The final tool stands alone in its round: beside other calls it was called without knowing what they say, so they
   are done first and it is to be called again.
3. What else a round can be means what it always means: a refusal is an answer without a value. Only a value that was
   cut by a length limit is no answer; it is not told back, it would be cut again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from runtime import events as e
from runtime.canonical import JsonObject
from runtime.errors import OutputInvalid, ProviderError
from runtime.items import REJECTED, ToolSpec
from runtime.output_type import Fit, Misfit, OutputType
from runtime.steps import Fail, Succeed

NATIVE = "native"
TOOL = "tool"
MODES = (NATIVE, TOOL)

FINAL_TOOL = "final_response"
"""The tool whose call is the final response."""
OUTPUT_SCHEMA = "output_schema"
"""The option under which a dialect finds what to ask for: `{name, schema, strict}`."""
MOST_MENDS = 1
"""How often a run's model may mend its answer."""

_LACKS_SCHEMAS = {
    "openai": re.compile(r"(ft:)?(gpt-3|gpt-4(-|$)|gpt-4o-2024-05-13|chatgpt-|o1-(mini|preview))"),
    "anthropic": re.compile(r"claude-(2|3|instant|4-|(opus|sonnet)-4-(0|2025))"),
}
"""Providers that know schemas, each with those of its models that do not."""

_ONLY_STRICT = frozenset({"anthropic"})
"""Dialects in which a schema without a strict form, or one that refers to itself, cannot be said."""


def usual_mode(provider: str, model: str) -> str:
    """How a model of this name is best asked: `tool` wherever nothing says that it knows schemas."""
    lacking = _LACKS_SCHEMAS.get(provider)
    return TOOL if lacking is None or lacking.match(model) else NATIVE


@dataclass(frozen=True, slots=True)
class Output:
    """What a run is asked for: a type, and how (`native` or `tool`)."""

    type: OutputType
    mode: str

    def options(self) -> JsonObject:
        """What goes into the options of each request."""
        if self.mode == TOOL:
            return {}
        schema = self.type.strict_schema
        asked: JsonObject = {
            "name": self.type.name,
            "schema": self.type.schema if schema is None else schema,
            "strict": schema is not None,
        }
        return {OUTPUT_SCHEMA: asked}

    def tools(self) -> list[ToolSpec]:
        """What the model is offered beside its other tools."""
        if self.mode == NATIVE:
            return []
        use = "Gives the final response. Call it alone, once everything else is done; answer in no other way."
        return [ToolSpec(FINAL_TOOL, use, self.type.schema)]

    def as_payload(self) -> JsonObject:
        """What the snapshot of an agent holds of it."""
        return {"mode": self.mode, "name": self.type.name, "schema": self.type.schema}


def output_for(type_: OutputType, asked: str | None, offered: str, dialect: str) -> Output:
    """How to ask for this type: as the agent's author `asked`, else as the model `offered`, where that can be."""
    if asked is None and dialect in _ONLY_STRICT and (type_.strict_schema is None or type_.is_recursive):
        return Output(type_, TOOL)
    return Output(type_, asked or offered)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows from a round that should have given the value."""

    end: Succeed | Fail | None = None
    """How the run ends; None: the model is asked again."""
    outputs: list[tuple[e.ToolCallCommitted, str, str]] = field(
        default_factory=list[tuple[e.ToolCallCommitted, str, str]]
    )
    """Calls of the final tool, each with its output and the output's kind."""
    rejection: str | None = None
    """What the model is told, if there was no call to answer."""


class Answering:
    """The answers of one run."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._mends = 0

    def resume(self, mends: int) -> None:
        """So many answers of the run have been mended already."""
        self._mends = mends

    def is_final(self, tool_name: str) -> bool:
        """Whether a call of this tool gives the value."""
        return self._output.mode == TOOL and tool_name == FINAL_TOOL

    def judge(
        self, texts: Sequence[str], calls: Sequence[e.ToolCallCommitted], *, finish: str, refused: bool
    ) -> Judgement | None:
        """What follows from a completed round: `texts` are its messages. None: nothing, the loop just goes on."""
        final = [call for call in calls if self.is_final(call.tool_name)]
        if len(final) < len(calls):
            again = f"Not taken: other calls were made beside this one. Call {FINAL_TOOL} once you have read them."
            return Judgement(outputs=[(call, again, "error") for call in final]) if final else None
        if final:
            return self._judge_calls(final)
        if refused:
            return Judgement(Succeed([]))
        found = self._validate_texts(texts)
        if isinstance(found, Fit):
            return Judgement(Succeed([], found.value))
        if finish == "length":
            cut = "The answer was cut by its length limit before its value was complete."
            return Judgement(Fail(ProviderError(cut, code="output_truncated")))
        if (failed := self._mended(found)) is not None:
            return Judgement(failed)
        return Judgement(rejection=self._rejection(found))

    def _judge_calls(self, calls: list[e.ToolCallCommitted]) -> Judgement:
        outputs: list[tuple[e.ToolCallCommitted, str, str]] = []
        misfit: Misfit | None = None
        value: Any = None
        taken = False
        for call in calls:
            if taken:
                outputs.append((call, "Not taken: another call gave the final response.", "error"))
                continue
            found = self._output.type.validate(call.arguments_json)
            if isinstance(found, Fit):
                taken, value = True, found.value
                outputs.append((call, "Accepted.", "result"))
            else:
                misfit = misfit or found
                told = f"Not accepted: the arguments do not fit.\n{_listed(found)}\nCall {FINAL_TOOL} again."
                outputs.append((call, told, "error"))
        if taken or misfit is None:
            return Judgement(Succeed([], value), outputs)
        return Judgement(self._mended(misfit), outputs)

    def _validate_texts(self, texts: Sequence[str]) -> Fit | Misfit:
        """The whole text counts; a provider that says something before the answer is understood as well."""
        found = self._output.type.validate("".join(texts))
        if isinstance(found, Fit) or len(texts) < 2:
            return found
        return self._output.type.validate(texts[-1])

    def _mended(self, misfit: Misfit) -> Fail | None:
        """How the run ends if its model has had its chance."""
        if self._mends < MOST_MENDS:
            self._mends += 1
            return None
        problems = "; ".join(misfit.problems)
        name = self._output.type.name
        return Fail(OutputInvalid(f"The model gave no valid {name}, though it was told what was wrong: {problems}."))

    def _rejection(self, misfit: Misfit) -> str:
        if self._output.mode == TOOL:
            return f"{REJECTED}\n{_listed(misfit)}\nGive the final response by calling {FINAL_TOOL}."
        schema = orjson.dumps(self._output.type.schema).decode()
        return f"{REJECTED}\n{_listed(misfit)}\nAnswer again, with nothing but JSON that fits this schema:\n{schema}"


def _listed(misfit: Misfit) -> str:
    return "\n".join(f"- {problem}" for problem in misfit.problems)
