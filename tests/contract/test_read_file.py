"""Reading files below one folder: what is read, and every way out that is shut."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import ConfigurationError
from runtime.tools import ToolError, read_file_tool

SECRET = "the secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with files, beside a secret that must stay out of reach."""
    folder = tmp_path / "root"
    (folder / "notes").mkdir(parents=True)
    (folder / "a.txt").write_text("hello", encoding="utf-8")
    (folder / "notes" / "b.txt").write_text("grüße", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET, encoding="utf-8")
    return folder


def _read(root: Path, path: str, max_bytes: int = 1000) -> str:
    return cast("str", read_file_tool(root, max_bytes=max_bytes)(path))


def _refusal(root: Path, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        _read(root, path)
    assert str(root.parent) not in caught.value.message.replace(repr(path), "")
    assert SECRET not in caught.value.message
    return caught.value.message


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.txt", "hello"), ("notes/b.txt", "grüße"), ("./notes//b.txt", "grüße"), ("notes/./b.txt", "grüße")],
)
def test_a_file_below_the_folder_is_read(root: Path, path: str, text: str):
    assert _read(root, path) == text


def test_the_model_sees_one_parameter(root: Path):
    declared = read_file_tool(root)

    assert declared.name == "read_file"
    assert list(declared.spec.parameters["properties"]) == ["path"]
    assert (declared.parallel, declared.idempotent) == (True, True)
    assert str(root) not in repr(declared.spec)


def test_the_folder_itself_may_be_named_through_a_link(root: Path):
    (root.parent / "alias").symlink_to(root)

    assert _read(root.parent / "alias", "a.txt") == "hello"


def test_bytes_that_are_no_text_are_replaced(root: Path):
    (root / "blob").write_bytes(b"PNG\xff\xfe\x00\x80ok")

    assert _read(root, "blob") == "PNG\ufffd\ufffd\x00\ufffdok"


def test_a_file_of_exactly_the_limit_is_whole(root: Path):
    (root / "full").write_bytes(b"x" * 1000)

    assert _read(root, "full") == "x" * 1000


def test_a_file_beyond_the_limit_is_cut_with_a_note(root: Path):
    (root / "long").write_bytes(b"x" * 1001)

    assert _read(root, "long") == "x" * 1000 + "\n[cut: these are the first 1000 of 1001 bytes]"


def test_a_huge_file_is_not_read_to_its_end(root: Path):
    with (root / "huge").open("wb") as file:
        file.truncate(2**40)

    text = _read(root, "huge", max_bytes=10)

    assert text == "\0" * 10 + f"\n[cut: these are the first 10 of {2**40} bytes]"


@pytest.mark.parametrize("max_bytes", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_a_cut_never_splits_a_character(root: Path, max_bytes: int):
    (root / "wide").write_text("aä€𝄞", encoding="utf-8")

    assert "\ufffd" not in _read(root, "wide", max_bytes)


# --- no way out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "notes/../../outside/secret.txt", "..", "notes/..", "a/../a.txt"]
)
def test_upwards_is_refused(root: Path, path: str):
    assert "upwards" in _refusal(root, path)


def test_an_absolute_path_is_refused_even_to_a_file_of_the_folder(root: Path):
    assert "relative" in _refusal(root, str(root.parent / "outside" / "secret.txt"))
    assert "relative" in _refusal(root, str(root / "a.txt"))
    assert "relative" in _refusal(root, "//a.txt")


@pytest.mark.parametrize("target", ["../outside/secret.txt", "a.txt", "nowhere", "link"])
def test_a_link_in_place_of_a_file_is_refused(root: Path, target: str):
    (root / "link").symlink_to(target)

    assert "symbolic link" in _refusal(root, "link")


@pytest.mark.parametrize("target", ["../../outside", "../notes", "/"])
def test_a_link_in_place_of_a_folder_is_refused(root: Path, target: str):
    (root / "notes" / "way").symlink_to(target, target_is_directory=True)

    assert "symbolic link" in _refusal(root, "notes/way/secret.txt")
    assert "symbolic link" in _refusal(root, "notes/way/b.txt")


def test_a_file_exchanged_for_a_link_after_it_was_looked_at_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch):
    looked = os.stat

    def exchange(name: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        status = looked(name, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to("../outside/secret.txt")
        return status

    declared = read_file_tool(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", exchange)
        with pytest.raises(ToolError, match="symbolic link"):
            declared("a.txt")


def test_a_file_exchanged_for_a_pipe_after_it_was_looked_at_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch):
    looked = os.stat

    def exchange(name: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        status = looked(name, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        (root / "a.txt").unlink()
        os.mkfifo(root / "a.txt")
        return status

    declared = read_file_tool(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", exchange)
        with pytest.raises(ToolError, match="not a regular file"):
            declared("a.txt")


def test_a_folder_exchanged_for_a_link_during_the_walk_leads_nowhere(root: Path, monkeypatch: pytest.MonkeyPatch):
    opened = os.open

    def exchange(name: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
        descriptor = opened(name, flags, dir_fd=dir_fd)
        if name == "notes":
            (root / "notes").rename(root / "moved")
            (root / "notes").symlink_to("../outside", target_is_directory=True)
            (root.parent / "outside" / "b.txt").write_text(SECRET, encoding="utf-8")
        return descriptor

    declared = read_file_tool(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", exchange)
        assert declared("notes/b.txt") == "grüße"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "", "notes", "out", "outside", "secret.txt", "a.txt", "/", "\0"]), max_size=6
    )
)
def test_no_path_reaches_the_secret(root: Path, parts: list[str]):
    if not (root / "out").is_symlink():
        (root / "out").symlink_to("../outside", target_is_directory=True)
    declared = read_file_tool(root)
    with suppress(ToolError):
        assert declared("/".join(parts)) == "hello"


# --- what is no file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["notes", "notes/", ".", "", "./"])
def test_a_folder_is_refused(root: Path, path: str):
    assert "a folder" in _refusal(root, path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(root: Path):
    os.mkfifo(root / "pipe")

    assert "not a regular file" in _refusal(root, "pipe")


def test_a_socket_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")

        assert "not a regular file" in _refusal(root, "sock")


def test_a_device_is_refused():
    with pytest.raises(ToolError, match="not a regular file"):
        read_file_tool(Path("/dev"))("null")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("b.txt", "no such file"),
        ("nowhere/b.txt", "no such file"),
        ("a.txt/b.txt", "not a folder"),
        ("a\0.txt", "no file name has"),
        ("a\ud800.txt", "no file name has"),
        ("x" * 5000, "too long"),
    ],
)
def test_a_path_that_names_no_file_is_refused_in_plain_words(root: Path, path: str, said: str):
    message = _refusal(root, path)

    assert said in message
    assert len(message) < 400


def test_no_descriptor_stays_open(root: Path):
    before = len(os.listdir("/dev/fd"))
    for path in ("a.txt", "notes/b.txt", "notes", "nowhere", "notes/nowhere", "a.txt/x"):
        with suppress(ToolError):
            _read(root, path)
    assert len(os.listdir("/dev/fd")) == before


# --- how it is made -----------------------------------------------------------------------------------------------


def test_a_root_that_is_no_folder_is_refused(root: Path):
    with pytest.raises(ConfigurationError, match="needs a folder"):
        read_file_tool(root / "a.txt")
    with pytest.raises(ConfigurationError, match="needs a folder"):
        read_file_tool(root / "nowhere")


def test_a_limit_below_one_byte_is_refused(root: Path):
    with pytest.raises(ConfigurationError, match="max_bytes"):
        read_file_tool(root, max_bytes=0)


def test_a_system_that_cannot_confine_it_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "supports_dir_fd", set[object]())

    with pytest.raises(ConfigurationError, match="cannot be confined"):
        read_file_tool(root)
