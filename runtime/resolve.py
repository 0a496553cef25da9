"""From a model's name to a model: the one place that knows which kinds there are."""

from __future__ import annotations

from runtime.errors import ConfigurationError
from runtime.models import Model
from runtime.providers import model_from_string, named_models
from runtime.scripted import ScriptedModel
from runtime.timeouts import Timeouts


def model_names() -> list[str]:
    """Every way to name a model."""
    return [*named_models(), "scripted"]


def resolve_model(model: Model | str | None, timeouts: Timeouts | None = None) -> Model:
    """The model itself, or the one that a string names: `scripted`, or `KIND:NAME` as `providers` knows them.

    `timeouts` are those of a model that is made here; one that was given has its own.
    Raises ConfigurationError, which lists what there is.
    """
    if model is None:
        raise ConfigurationError(
            "This agent has no model. Name one in Agent(model=…), --model or AGUI_BRIDGE_MODEL: "
            f"{', '.join(named_models())}, or scripted, which needs no key."
        )
    if not isinstance(model, str):
        return model
    return ScriptedModel() if model == "scripted" else model_from_string(model, timeouts)
