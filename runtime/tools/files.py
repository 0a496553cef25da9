"""A tool that reads text files below one folder, and nothing else.

The path is walked component by component, each opened relative to the folder before it and never through a symbolic
link. So nothing that is exchanged while the walk goes on can lead out of the folder: there is no moment at which a
checked name is looked up again. What it says to the model never has a path that the model did not write itself.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path

from runtime.canonical import clean_text
from runtime.errors import ConfigurationError
from runtime.tools.toolbox import Tool, ToolError, tool

_MAX_SHOWN = 200
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP = _FOLDER | getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: a pipe that took the file's place since it was looked at must not hold the thread.
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

_PROBLEMS: dict[int, str] = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of the path is not a folder, or is a symbolic link",
    errno.ELOOP: "it is a symbolic link; links are not followed",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
    errno.ENAMETOOLONG: "the path is too long",
}


def read_file_tool(root: Path, *, max_bytes: int = 256 * 1024) -> Tool:
    """The tool `read_file(path)`, confined to `root`: at most the first `max_bytes` of a file, with a note if cut.

    Raises ConfigurationError if `root` is no folder, or on a system that cannot open files relative to a folder.
    """
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise ConfigurationError("read_file cannot be confined to a folder on this system; leave it out.")
    if max_bytes < 1:
        raise ConfigurationError(f"max_bytes is a number of bytes greater than 0, not {max_bytes}.")
    folder = root.resolve()
    if not folder.is_dir():
        raise ConfigurationError(f"read_file needs a folder to read from; {root} is none.")

    @tool(parallel=True, idempotent=True)
    def read_file(path: str) -> str:
        """Read a text file.

        Args:
            path: The file's path relative to the folder of files, with / between its parts.
        """
        parts = _parts(path)
        try:
            file = _open_below(folder, parts, path)
            try:
                return _read(file, max_bytes, path)
            finally:
                os.close(file)
        except OSError as error:
            problem = _PROBLEMS.get(error.errno or 0, "it could not be read")
            raise _refusal(path, problem) from error

    return read_file


def _parts(path: str) -> list[str]:
    if path.startswith("/"):
        raise _refusal(path, "the path must be relative")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refusal(path, "the path may not go upwards (..)")
    if "\0" in path or clean_text(path) != path:
        raise _refusal(path, "the path has characters that no file name has")
    if not parts:
        raise _refusal(path, "it is a folder, not a file")
    return parts


def _open_below(root: Path, parts: list[str], path: str) -> int:
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Looked at before it is opened, because opening a device can already do something.
        _require_regular(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False), path)
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _read(file: int, max_bytes: int, path: str) -> str:
    status = os.fstat(file)
    _require_regular(status, path)
    data = bytearray()
    while len(data) <= max_bytes and (chunk := os.read(file, max_bytes + 1 - len(data))):
        data += chunk
    if len(data) <= max_bytes:
        return data.decode("utf-8", "replace")
    # A character that the cut would split is left out, not shown as damaged.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(data[:max_bytes]), final=False)
    return f"{text}\n[cut: these are the first {max_bytes} of {max(status.st_size, len(data))} bytes]"


def _require_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _refusal(path, "it is a folder, not a file")
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(path, _PROBLEMS[errno.ELOOP])
    if not stat.S_ISREG(status.st_mode):
        raise _refusal(path, "it is not a regular file")


def _refusal(path: str, problem: str) -> ToolError:
    shown = path if len(path) <= _MAX_SHOWN else path[: _MAX_SHOWN - 1] + "…"
    return ToolError(f"Cannot read {shown!r}: {problem}.")
