"""How long a model provider is waited for. Pure.

Three different silences: nobody answers the call, the model does not begin to speak, the connection goes quiet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from runtime.errors import ConfigurationError

CONNECT_TIMEOUT_S = 10.0
FIRST_TOKEN_TIMEOUT_S = 600.0
"""Models that think before they speak, and show nothing of it, take minutes."""
SILENCE_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The patience with one attempt at a model call, in seconds. Raises ConfigurationError unless all are positive.

    `connect_s`: until the provider takes the connection. `first_token_s`: from asking until the model has said
    anything, be it a thought; None waits as long as the connection lives. `silence_s`: between two bytes of the
    stream, so that a provider's signs of life (pings, comments) count.
    """

    connect_s: float = CONNECT_TIMEOUT_S
    first_token_s: float | None = FIRST_TOKEN_TIMEOUT_S
    silence_s: float = SILENCE_TIMEOUT_S

    def __post_init__(self) -> None:
        for seconds in (self.connect_s, self.first_token_s, self.silence_s):
            if seconds is not None and not 0 < seconds < math.inf:
                raise ConfigurationError(f"A timeout is a number of seconds greater than 0, not {seconds}.")
