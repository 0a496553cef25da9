"""A SQLite store beside the process that has it open: for commands that look at it, mark a run, or remove what is old.

No run begins here and no fact is added: that is for who holds the lock. Nothing is made or migrated. What is at work
is at work elsewhere, and its lease holds as long as the file is locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from runtime.errors import ConfigurationError, StoreError
from runtime.events import Event, Record
from runtime.journal import Begun, Opening
from runtime.journal.group import CommitThread
from runtime.journal.migrate import migrations, require_current, sqlite_version
from runtime.journal.sqlite import Opened, SqliteJournal
from runtime.journal.sqlite_connection import FOREIGN, connect_writer, tune, unopened
from runtime.journal.sqlite_reader import SqliteReader
from runtime.journal.sqlite_writer import SqliteWriter
from runtime.run import RunRecord


class SqliteBeside(SqliteJournal):
    """See the module. Raises ConfigurationError on `open` if there is no such file, StoreVersionError if it is of
    another release."""

    @property
    def exclusive(self) -> bool:
        """See the port."""
        return False

    async def begin_run(self, opening: Opening) -> Begun:
        """Refused: raises StoreError."""
        raise _refused()

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        """Refused: raises StoreError."""
        raise _refused()

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """Never: whoever holds the lock performs the run."""
        return None

    def _open(self) -> None:
        if not self._path.is_file():
            raise ConfigurationError(f"There is no store {self._path}.")
        with ExitStack() as resources:
            connection = connect_writer(self._path)
            resources.callback(connection.close)
            try:
                require_current(sqlite_version(connection), migrations("sqlite"))
                tune(connection, self._synchronous)
            except FOREIGN as error:
                raise unopened(self._path, error) from error
            reader = SqliteReader(self._path)
            resources.callback(reader.close)
            writer = SqliteWriter(connection, self._clock)
            thread = CommitThread(writer.commit, "journal-mark")
            resources.callback(thread.stop)
            self._store = Opened(reader, writer, thread, resources.pop_all())


def _refused() -> StoreError:
    return StoreError("The store is open beside its server: runs are begun and written there.")
