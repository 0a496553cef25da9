"""A lock on a file that lives exactly as long as its holder: the operating system lets go when a process dies.

The lock file stays when the lock is released: to delete it would let two processes hold "the" lock, each on a file
of its own. It contains the holder's process id, for people only; nothing is decided by it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from runtime.errors import ConfigurationError, StoreLocked

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> None:
        # A byte far behind the text, because others cannot read what is locked here.
        os.lseek(handle, 1 << 30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """An exclusive lock, held from construction to `release`.

    Raises StoreLocked if somebody holds it (naming the process if known), ConfigurationError if the file cannot be
    made or locked.
    """

    def __init__(self, path: Path):
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigurationError(f"The lock file {path} cannot be opened: {error.strerror}.") from error
        try:
            _try_lock(self._handle)
        except (BlockingIOError, PermissionError) as error:
            holder = os.read(self._handle, 32).decode("ascii", "replace").strip()
            os.close(self._handle)
            by = f"process {holder}" if holder else "another process"
            raise StoreLocked(f"The store is open in {by} (lock file {path}).") from error
        except OSError as error:
            os.close(self._handle)
            raise ConfigurationError(f"The file system cannot lock {path}: {error.strerror}.") from error
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{os.getpid()}\n".encode("ascii"))

    def release(self) -> None:
        """Let go; harmless when done already."""
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1
