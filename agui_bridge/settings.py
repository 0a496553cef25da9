"""Settings: typed, with defaults, each also the environment variable `AGUI_BRIDGE_<NAME>`.

docs/settings.md lists them; a test compares it with this file.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from runtime.resolve import model_names
from runtime.timeouts import CONNECT_TIMEOUT_S, FIRST_TOKEN_TIMEOUT_S, SILENCE_TIMEOUT_S, Timeouts

COPILOTKIT_PREFIX = "/copilotkit"

_MODELS = ", ".join(f"`{name}`" for name in model_names())


class Settings(BaseSettings):
    """What can be set. Command line options win over the environment, the environment over these defaults."""

    model_config = SettingsConfigDict(env_prefix="AGUI_BRIDGE_", extra="ignore", frozen=True)

    store: str = Field(
        "sqlite:///agui-bridge.db", description="Where facts are kept: `sqlite:///PATH`, `postgresql://…` or `memory:`."
    )
    synchronous: Literal["full", "normal"] = Field(
        "full",
        description="SQLite's durability: `full` syncs every commit to disk; `normal` may lose the last moments when "
        "the machine (not the process) dies.",
    )
    auto_migrate: bool = Field(True, description="Whether the server applies pending migrations when it starts.")
    model: str | None = Field(None, description=f"The model for agents that name none: {_MODELS}.")
    host: str = Field("127.0.0.1", description="The address that the server listens on.")
    port: int = Field(8000, ge=0, le=65535, description="The port that the server listens on; 0 takes a free one.")
    max_body_mib: float = Field(16, gt=0, description="The largest request body, in MiB.")
    max_rounds: int = Field(50, ge=1, description="How many model calls a run may make before it is stopped.")
    model_retries: int = Field(
        2, ge=0, description="How often a model call that showed nothing yet is tried again after a passing failure."
    )
    connect_timeout_s: float = Field(
        CONNECT_TIMEOUT_S, gt=0, description="How long a model's provider may take to take a connection, in seconds."
    )
    first_token_timeout_s: float = Field(
        FIRST_TOKEN_TIMEOUT_S,
        gt=0,
        description="How long a model may take to say anything, be it a thought, in seconds.",
    )
    silence_timeout_s: float = Field(
        SILENCE_TIMEOUT_S,
        gt=0,
        description="How long nothing at all, not even a sign of life, may come of a model's stream, in seconds.",
    )
    progress_interval_s: float = Field(
        0.2,
        ge=0,
        description="How often a tool that streams may tell of its progress: once in so many seconds, each time what "
        "it said last.",
    )
    on_disconnect: Literal["cancel", "continue"] = Field(
        "cancel", description="What becomes of a run that nobody reads any more."
    )
    on_busy: Literal["reject", "enqueue", "interrupt", "steer"] = Field(
        "reject",
        description="What becomes of a new message of a page while a run is at work on its thread: it is refused, it "
        "waits, the run is stopped for it, or the run takes it in between two of its rounds.",
    )
    queue_limit: int = Field(16, ge=1, description="How many messages may wait for one thread.")
    disconnect_grace_s: float = Field(
        10, ge=0, description="How long nobody may read a run before it is cancelled, in seconds."
    )
    keep_alive_s: float = Field(15, gt=0, description="After how many silent seconds a stream sends a comment.")
    lease_s: float = Field(
        15, gt=0, description="How long a process may give no sign of life before others close its runs, in seconds."
    )
    drain_s: float = Field(
        5,
        ge=0,
        description="How long running runs may take at shutdown to finish, or to come to where another process goes on "
        "with them, in seconds.",
    )
    recovery: Literal["off", "continue"] = Field(
        "off",
        description="What becomes of a run whose process was lost: with `continue` another run goes on from what it "
        "had committed, once.",
    )
    workers: int = Field(1, ge=1, description="How many processes `serve` starts; more than one need PostgreSQL.")
    client_state: Literal["replace", "merge", "ignore"] = Field(
        "replace", description="What a state that the client sends does to the thread's."
    )
    accept_system_messages: bool = Field(
        False, description="Whether system and developer messages of the client reach the model."
    )
    legacy_subagents: bool = Field(
        False,
        description="Whether clients that send no `protocolVersion` are told of child runs as such: `@ag-ui/client` "
        "0.0.59 can read it, 0.0.57 fails on it. Without it a child's words stand among the run's own.",
    )
    artifacts: str | None = Field(
        None,
        description="Where the bytes of artifacts are kept: a folder, or `database`. Without it a SQLite store has "
        "them in the folder `PATH.artifacts` beside it, and other stores have them in themselves.",
    )
    artifact_link_s: float = Field(
        86400, gt=0, description="How long a link to an artifact that a page is told is good at least, in seconds."
    )
    inline_media_kib: float = Field(
        64,
        ge=0,
        description="How large an image, a sound or a document in a message may be to stay in the journal itself, in "
        "KiB. What is larger is kept once, like an artifact, and the journal refers to it.",
    )
    max_upload_mib: float = Field(64, gt=0, description="The largest upload, in MiB.")
    unused_upload_s: float = Field(
        86400, gt=0, description="How long an upload that no message has used is kept, in seconds."
    )
    fetch_media_from: list[str] = Field(
        default_factory=list[str],
        description="The web origins from which the server fetches media that messages name by URL, as JSON: "
        '`["https://files.example"]`. Every other URL is handed to the provider of the model, and never fetched here.',
    )
    signing_key: SecretStr | None = Field(
        None,
        description="The secret that signs links. Without it the store keeps one that was made once.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^/?#\s]+(/[^?#\s]*[^/?#\s])?$",
        description="Where pages reach this server, for absolute links: `https://app.example`. Without it links "
        "begin with what the request named.",
    )
    compact_after_s: float | None = Field(
        3600,
        ge=0,
        description="How long after a run has ended its deltas become one event for each part, in seconds; empty: "
        "never. Cursors between such deltas are answered with 410 then.",
    )
    retention_days: float | None = Field(
        None,
        gt=0,
        description="After how many days without a run a thread goes, with its session, its facts and its artifacts; "
        "the records of its runs stay. Empty: never.",
    )
    allowed_origins: list[str] = Field(
        default_factory=list[str],
        description='The web origins that may call this server, as JSON: `["https://app.example"]`. On a loopback '
        "address every loopback origin may, and a Host must be a loopback name or one of these origins' own.",
    )
    copilotkit_prefix: str = Field(
        COPILOTKIT_PREFIX,
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Where CopilotKit's runtime protocol is spoken, for a page's `runtimeUrl`; empty: nowhere.",
    )
    inspector: bool = Field(
        False, description="Whether the AG-UI Inspector, a page for developers, is served at `/inspector`."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="What is logged.")

    @property
    def most_upload_bytes(self) -> int:
        """The largest upload, in bytes."""
        return int(self.max_upload_mib * 2**20)

    @property
    def timeouts(self) -> Timeouts:
        """The patience with a model call of an agent that says nothing of it."""
        return Timeouts(self.connect_timeout_s, self.first_token_timeout_s, self.silence_timeout_s)
