"""The command line, as real processes: what it says, what it serves, and with which code it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

import agui_bridge
from agui_bridge.cli import main
from runtime.providers import keys
from runtime.resolve import model_names
from tests.wire.sockets import post

PATIENCE_S = 20
ROOT = Path(__file__).resolve().parents[2]
MINE = """
from agui_bridge import Agent
agent = Agent("mine", model="scripted")
both = [agent, Agent("other", model="scripted")]
named = {"a": agent, "b/c": both[1]}
nothing = []
wrong = [agent, "x"]
text = "agent"
"""


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGUI_BRIDGE_", "OPENAI_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program in it."""
    (tmp_path / "my_app.py").write_text(MINE, "utf-8")
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agui_bridge.cli", *arguments]


def refused(folder: Path, *arguments: str, **more: str) -> str:
    """What a command that cannot work says: one line."""
    done = subprocess.run(
        command(*arguments), cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


@dataclass
class Process:
    """A server at work, and everything that it has said."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        """Where it listens, as its log says."""
        return next(found[1] for line in self.said if (found := re.search(r"(http://\S+)", line)))

    def until(self, mark: str) -> None:
        """Read what it says until a line has `mark`."""
        assert self.process.stdout is not None
        while not any(mark in line for line in self.said):
            line = self.process.stdout.readline()
            assert line, f"it ended without {mark!r}: {self.said}"
            self.said.append(line.rstrip("\n"))

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(with_signal)
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        self.said += rest.splitlines()
        return self.process.returncode


@contextmanager
def serving(folder: Path, *arguments: str, **more: str) -> Generator[Process, None, None]:
    with subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=1,
    ) as process:
        server = Process(process)
        try:
            server.until("agui-bridge serves")
            yield server
        finally:
            process.kill()


def asking(words: str) -> dict[str, object]:
    return {"threadId": "t1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": words}]}


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
            return response.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def ask(url: str, words: str) -> bytes:
    request = urllib.request.Request(url, json.dumps(asking(words)).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        return response.read()


# --- serving ------------------------------------------------------------------------------------------------------


def test_the_demo_says_where_it_is_and_how_to_ask_it_and_nothing_else(tmp_path: Path):
    with serving(tmp_path, "demo", "--port", "0", "--store", "memory:") as server:
        server.until("Ctrl+C")
        assert server.said[0] == f"INFO agui_bridge: agui-bridge serves demo on {server.url}"
        hint = "\n".join(server.said).partition("  curl ")[2].partition("\n\n")[0]
        assert hint.startswith(f"-N {server.url}/ ")
        body = json.loads(hint.partition("-d '")[2].removesuffix("'"))
        assert b'"toolCallName":"get_weather"' in ask(f"{server.url}/", body["messages"][0]["content"])
        talk = len(server.said)
        assert server.stop(signal.SIGINT) == 0
        assert server.said[talk:] == []  # no traceback, no farewell
        assert not any("vicorn" in line for line in server.said)


@pytest.mark.parametrize(
    ("target", "agents", "path"),
    [("my_app", "mine", ""), ("my_app:both", "mine, other", "agents/other"), ("my_app:named", "a, b/c", "agents/b/c")],
)
def test_an_agent_a_list_or_a_mapping_of_a_module_is_served(folder: Path, target: str, agents: str, path: str):
    with serving(folder, "serve", target, "--port", "0", "--store", "memory:") as server:
        assert server.said == [f"INFO agui_bridge: agui-bridge serves {agents} on {server.url}"]
        assert b"You " in ask(f"{server.url}/{path}", "purple")


def test_settings_come_from_the_environment_and_options_win(folder: Path):
    given = {"AGUI_BRIDGE_PORT": "1", "AGUI_BRIDGE_STORE": "sqlite:///env.db", "AGUI_BRIDGE_MODEL": "scripted"}
    with serving(folder, "serve", "--port", "0", **given) as server:
        assert "serves demo on" in server.said[0]
        assert (folder / "env.db").is_file()
        second = refused(folder, "demo", "--port", "0", "--store", "sqlite:///env.db")
        assert f"The store is open in process {server.process.pid}" in second
        port = server.url.rpartition(":")[2]
        taken = refused(folder, "demo", "--port", port, "--store", "memory:")
        assert f"Port {port} on 127.0.0.1 is in use" in taken
        assert "--port" in taken
        assert server.stop() in (0, -signal.SIGTERM)
    with serving(folder, "demo", "--port", "0", "--store", "sqlite:///env.db") as again:
        assert again.stop() in (0, -signal.SIGTERM)


def test_a_second_interrupt_does_not_wait_for_runs_and_the_next_start_closes_them(folder: Path):
    store = ("--port", "0", "--store", "sqlite:///x.db")
    with serving(folder, "demo", *store, AGUI_BRIDGE_DRAIN_S="600") as server:
        place = urlsplit(server.url)
        with socket.create_connection((place.hostname, place.port), PATIENCE_S) as client:
            client.sendall(post(asking("/tokens 1000 200")))
            seen = b""
            while b"tok" not in seen:
                seen += client.recv(65536)
            run = seen.partition(b"location: ")[2].split(b"\r\n")[0].decode()
            server.process.send_signal(signal.SIGINT)
            while status(f"{server.url}/ready") != 503:
                pass
            assert server.stop(signal.SIGINT) == 0
    with serving(folder, "demo", *store) as again, urllib.request.urlopen(again.url + run) as response:
        assert json.load(response)["status"] == "interrupted"


def test_a_refused_start_leaves_no_store_behind(folder: Path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        assert "in use" in refused(folder, "demo", "--port", port, "--store", "sqlite:///new.db")
    assert not (folder / "new.db").exists()


def test_a_server_for_the_network_says_that_it_asks_nobody(folder: Path):
    with serving(folder, "demo", "--port", "0", "--host", "0.0.0.0", "--store", "memory:") as server:
        assert server.said[0].startswith("WARNING agui_bridge: 0.0.0.0 is reached from the network")


# --- what cannot work is told in a line -----------------------------------------------------------------------------


def told(*arguments: str) -> str:
    """The same as `refused`, without a process."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    (line,) = result.output.splitlines()
    assert line.startswith("Error: ")
    return line


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere", "There is no module 'nowhere'"),
        ("my_app:nobody", "The module my_app has no 'nobody'"),
        ("my_app:text", "my_app:text is no Agent, and no list or mapping of Agents"),
        ("my_app:nothing", "is no Agent"),
        ("my_app:wrong", "is no Agent"),
        ("my_app.py:agent", "my_app.py is a file: name the module (my_app:agent)"),
        (":agent", "is no name of a module"),
        ("../my_app:agent", "is no name of a module"),
        (".my_app", "is no name of a module"),
    ],
)
def test_a_wrong_target_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, why: str):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_app", raising=False)
    assert why in told("serve", target)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["serve"], "Say what to serve"),
        (["serve", "--model", "gpt-5"], "There is no model 'gpt-5'"),
        (["demo", "--store", "bogus://x"], "There is no store for 'bogus'"),
        (["demo", "--store", "sqlite:///"], "names no file"),
        (["demo", "--port", "0", "--store", "sqlite:///no/such/folder/x.db"], "cannot be opened"),
        (["demo", "--port", "0", "--host", "no.such.host.invalid"], "There is no address for the host"),
        (["migrate", "--store", "sqlite:///no/such/folder/x.db"], "cannot be opened"),
    ],
)
def test_what_cannot_work_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str):
    monkeypatch.chdir(tmp_path)
    assert why in told(*arguments)


def test_a_wrong_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name, value in (("PORT", "high"), ("DRAIN_S", "-1"), ("ON_DISCONNECT", "explode")):
        with monkeypatch.context() as only:
            only.setenv(f"AGUI_BRIDGE_{name}", value)
            assert f"AGUI_BRIDGE_{name}: " in told("demo")
    monkeypatch.setenv("AGUI_BRIDGE_ALLOWED_ORIGINS", "https://app.example")
    assert "allowed_origins" in told("demo")


def test_the_version_is_told():
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"agui-bridge, version {agui_bridge.__version__}\n")


# --- migrate and doctor ---------------------------------------------------------------------------------------------


def examined(*arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code of doctor, and its findings: level and message by subject."""
    result = CliRunner().invoke(main, ["doctor", *arguments])
    lines = [re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in result.output.splitlines()]
    return result.exit_code, {subject: (level, message) for level, subject, message in lines}


def test_migrate_makes_the_store_and_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        result = CliRunner().invoke(main, ["migrate", "--store", "sqlite:///x.db"])
        assert (result.exit_code, result.output) == (0, "sqlite:///x.db is up to date.\n")
    code, findings = examined("--store", "sqlite:///x.db")
    assert (code, findings["store"]) == (0, ("ok", "sqlite:///x.db opens and is up to date"))


def test_a_look_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    code, findings = examined("--store", "sqlite:///x.db")
    assert (code, findings["store"][0]) == (0, "ok")
    assert "the first start makes it" in findings["store"][1]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.db").touch()
    code, findings = examined("--store", "sqlite:///x.db")
    assert (code, findings["store"][0]) == (0, "warn")
    assert (tmp_path / "x.db").stat().st_size == 0
    monkeypatch.setenv("AGUI_BRIDGE_AUTO_MIGRATE", "off")
    code, findings = examined("--store", "sqlite:///x.db")
    assert (code, findings["store"][0]) == (1, "fail")
    assert "agui-bridge migrate" in findings["store"][1]


def test_doctor_warns_of_what_is_unsafe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGUI_BRIDGE_SYNCHRONOUS", "normal")
    monkeypatch.setenv("AGUI_BRIDGE_HOST", "0.0.0.0")
    for name in keys():
        monkeypatch.delenv(name, raising=False)
    code, findings = examined("--store", "memory:")
    assert code == 0
    assert {subject: level for subject, (level, _) in findings.items()} == {
        "version": "ok",
        "store": "warn",
        "durability": "warn",
        "address": "warn",
        "models": "warn",
    }
    assert "AGUI_BRIDGE_SYNCHRONOUS=full" in findings["durability"][1]


@pytest.mark.parametrize("name", keys())
def test_doctor_says_which_models_a_key_opens(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for other in keys():
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "x")
    level, message = examined("--store", "memory:")[1]["models"]
    assert (level, message) == ("ok", f"{name} is set: --model {' or '.join(keys()[name])} works")


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_the_help_names_every_kind_of_model(command: str):
    said = CliRunner().invoke(main, [command, "--help"]).output
    assert all(name in said for name in model_names())


def test_doctor_is_content_with_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    code, findings = examined()
    assert (code, {level for level, _ in findings.values()}) == (0, {"ok"})


def test_doctor_fails_for_a_store_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 20, "utf-8")
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    for url, why in (
        ("sqlite:///no/folder/x.db", "There is no folder"),
        ("sqlite:///text.db", "not a database"),
        ("sqlite:///foreign.db", "belongs to another program"),
        ("bogus://x", "There is no store"),
        ("sqlite:///", "names no file"),
    ):
        code, findings = examined("--store", url)
        assert (code, findings["store"][0]) == (1, "fail")
        assert why in findings["store"][1]
