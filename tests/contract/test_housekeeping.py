"""What a server does with old facts by itself, on every store, with real readers and real files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from zipfile import ZipFile

import pytest

from agui_bridge.export import export
from runtime.artifacts import ArtifactShelf
from runtime.authority import Principal
from runtime.blobs import Blobs
from runtime.blobs.contents import ContentBlobs
from runtime.blobs.folder import FolderBlobs
from runtime.erasure import Erasure
from runtime.errors import InvalidInput, StoreError, ThreadBusy
from runtime.events import ActivitySnapshot, Custom
from runtime.housekeeping import Housekeeper, RetentionPolicy
from runtime.journal.catalogue import Owner, RunFilter
from runtime.journal.postgres import PostgresStore
from runtime.journal.postgres_connection import transaction
from runtime.journal.postgres_schema import WEEK_MS, Partition, partition_of, statements_for
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.media import data_source
from runtime.media_shelf import MediaShelf
from runtime.testing import CountingIds, ManualClock, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.test_retention import DAY, ME, NOW, SPOKEN, begun, ended, opening
from tests.contract.workshop import only, workshop
from tests.journals import Double
from tests.stores import RECORDED, PostgresHome


class Kept:
    """A store with its keeper, at NOW plus `days`."""

    def __init__(self, store: Store, blobs: Blobs, policy: RetentionPolicy, days: float = 0) -> None:
        self.clock = ManualClock(round(NOW + days * DAY))
        self.shelf = ArtifactShelf(store, blobs, self.clock, CountingIds())
        self.tail = Tail(store)
        self.forgotten: list[str] = []
        self.cancelled: list[str] = []
        self.erasure = Erasure(store, self.shelf, self._cancel, self.forgotten.extend)
        self.keeper = Housekeeper(store, self.erasure, self.clock, policy, lambda: self.tail.read_runs)

    async def _cancel(self, run_id: str, reason: str, wait_s: float) -> None:
        self.cancelled.append(run_id)


def kept_in(store: Store, policy: RetentionPolicy, days: float = 0) -> Kept:
    return Kept(store, ContentBlobs(store), policy, days)


async def test_runs_are_compacted_when_they_have_been_over_for_long_enough(store: Store):
    for number in range(70):  # more than are asked for at once
        await ended(store, opening(f"run_{number}", f"s{number}"), SPOKEN)
    young = kept_in(store, RetentionPolicy(3600.0), 0.01)
    assert (await young.keeper.keep()).compacted_runs == 0
    old = kept_in(store, RetentionPolicy(3600.0), 0.05)
    kept = await old.keeper.keep()
    assert (kept.compacted_runs, kept.saved_rows) == (70, 280)
    assert (await old.keeper.keep()).compacted_runs == 0


async def test_what_is_read_here_is_left_alone_until_its_reader_has_gone(store: Store):
    await ended(store, opening("run_1", "s1"), SPOKEN)
    kept = kept_in(store, RetentionPolicy(0.0, 60.0), 1)
    reader = kept.tail.follow("run_1", 0)
    assert not (await kept.keeper.keep()).gone.database
    assert len(await store.read("run_1", 0, 100)) == 15
    reader.close()
    after = await kept.keeper.keep()
    assert after.saved_rows == 4
    assert after.gone.database.counts["threads"] == 1


async def test_a_thread_that_goes_takes_its_files_along_and_leaves_those_that_others_name(store: Store, tmp_path: Path):
    blobs = FolderBlobs(tmp_path / "artifacts")
    kept = Kept(store, blobs, RetentionPolicy(None, 1.5 * 86400), 3)
    old = await ended(store, opening("run_1", "s1"))
    new = await ended(store, opening("run_2", "s2"), at=NOW + 2 * DAY)
    alone = await kept.shelf.make(old, "a.txt", "text/plain", b"alone")
    await kept.shelf.make(old, "b.txt", "text/plain", b"shared")
    shared = await kept.shelf.make(new, "c.txt", "text/plain", b"shared")
    gone = (await kept.keeper.keep()).gone
    assert gone.as_payload() == {
        "database": {"threads": 1, "runs": 1, "sessions": 1, "artifacts": 2, "events": 2},
        "artifact_files": 1,
    }
    assert files_in(tmp_path / "artifacts") == [shared.digest]
    assert await kept.shelf.find(alone.artifact_id) is None
    pieces = [piece async for piece in kept.shelf.pieces(shared, 2, 3)]
    assert b"".join(pieces) == b"are"


class Watched(Double):
    """A store that says when it has compacted a run."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.compacted = asyncio.Event()

    async def compact(self, run_id: str, at: int) -> int:
        saved = await super().compact(run_id, at)
        self.compacted.set()
        return saved


async def test_the_keeper_works_by_itself_and_survives_a_store_that_fails(store: Store):
    await ended(store, opening("run_1", "s1"), SPOKEN)
    watched = Watched(store)
    kept = kept_in(watched, RetentionPolicy(0.0), 1)
    kept.keeper.start()
    async with asyncio.timeout(10):
        await watched.compacted.wait()
    await kept.keeper.stop()
    assert await store.uncompacted_runs(NOW + DAY, 1) == []
    await store.close()
    failing = kept_in(store, RetentionPolicy(0.0), 1)
    failing.keeper.start()
    await asyncio.sleep(0)
    await failing.keeper.stop()
    await store.open()


# --- erasure ------------------------------------------------------------------------------------------------------


async def test_an_owner_is_erased_with_hidden_and_expired_threads_and_nobody_else(store: Store, tmp_path: Path):
    kept = Kept(store, FolderBlobs(tmp_path), RetentionPolicy())
    for number in range(20):
        await ended(store, opening(f"run_{number}", f"s{number}"))
    await store.hide_session(ME, "s3", NOW)
    await store.expire(NOW + 1, NOW, 2)
    theirs = await ended(store, opening("run_x", "sx", owner=Owner("-", "you")))
    assert {session.session_id for session in await store.sessions_of_owner(ME)} >= {"s3"}
    receipt = await kept.erasure.owner(ME, 1)
    assert receipt.database.counts["runs"] == 20
    assert sorted(kept.forgotten) == sorted(f"thread of s{n}" for n in range(20))
    assert await store.list_every_run(RunFilter(), None, 100) == [theirs]
    assert await store.sessions_of_owner(ME) == []
    assert not (await kept.erasure.owner(ME, 1)).database


async def test_a_run_that_does_not_stop_keeps_its_session(store: Store):
    run = await begun(store, opening("run_1", "s1"))
    kept = kept_in(store, RetentionPolicy())
    with pytest.raises(ThreadBusy):
        await kept.erasure.session(ME, "s1", 0.1)
    assert kept.cancelled == ["run_1"]
    assert await store.find_run("run_1") == run


# --- the place of the bytes ---------------------------------------------------------------------------------------


@pytest.fixture(params=["folder", "contents"])
def blobs(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Blobs:
    return FolderBlobs(tmp_path / "blobs") if request.param == "folder" else ContentBlobs(store)


async def test_bytes_come_back_as_they_were_put_whole_and_in_part(blobs: Blobs, tmp_path: Path):
    data = bytes(range(256)) * 3000
    source = tmp_path / "source"
    source.write_bytes(data)
    blob = await blobs.put(source)
    assert blob == await blobs.put(data)
    assert blob.size == len(data)
    assert await blobs.has(blob.digest)
    assert b"".join([piece async for piece in blobs.pieces(blob.digest, 5, 300_000)]) == data[5:300_005]
    assert [piece async for piece in blobs.pieces(blob.digest, 0, 0)] == []
    empty = await blobs.put(b"")
    assert empty.size == 0
    assert await blobs.has(empty.digest)
    assert not await blobs.has("0" * 64)
    with pytest.raises(StoreError):
        await anext(blobs.pieces("0" * 64, 0, 1))
    with pytest.raises(InvalidInput, match="cannot be read"):
        await blobs.put(tmp_path / "none")


async def test_a_file_that_is_named_again_while_it_is_removed_stays(tmp_path: Path):
    blobs = FolderBlobs(tmp_path)
    blob = await blobs.put(b"tea")

    async def named(digest: str) -> bool:
        assert not await blobs.has(digest)
        return True

    async def unnamed(digest: str) -> bool:
        return False

    assert not await blobs.remove(blob.digest, named)
    assert await blobs.has(blob.digest)
    assert await blobs.remove(blob.digest, unnamed)
    assert not await blobs.remove(blob.digest, unnamed)
    assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "media_type"), [("", "text/plain"), ("a\nb", "text/plain"), ("a", "text"), ("a", "a/b\n")]
)
async def test_a_name_or_type_that_is_none_is_refused_before_anything_is_stored(
    name: str, media_type: str, store: Store
):
    run = await ended(store, opening("run_1", "s1"))
    kept = kept_in(store, RetentionPolicy())
    with pytest.raises(InvalidInput):
        await kept.shelf.make(run, name, media_type, b"x")
    assert await store.artifacts_of(run.thread_id) == []


# --- a tool -------------------------------------------------------------------------------------------------------


async def test_an_artifact_is_stored_before_the_journal_tells_of_it_and_a_late_one_is_dropped():
    late: list[ToolContext] = []

    @tool(timeout_s=0.05)
    async def stubborn(ctx: ToolContext) -> str:
        """Go on when told to stop."""
        late.append(ctx)
        ctx.activity("shop.basket", {"n": 1})
        try:
            await asyncio.Event().wait()
        finally:
            ctx.activity("shop.basket", {"n": 2})
        return ""

    async with workshop(calls(("stubborn", "{}")), says("Done"), tools=[stubborn]) as shop:
        events = await shop.run()
        late[0].activity("shop.basket", {"n": 3})
        late[0].custom("shop.late", 1)
        shown = [event.content["n"] for event in only(events, ActivitySnapshot)]
        assert shown[0] == 1
        assert 3 not in shown
        assert only(events, Custom) == []


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


@pytest.mark.needs_postgres
async def test_a_week_of_which_nothing_is_kept_is_dropped_whole_and_another_is_not(postgres_home: PostgresHome):
    store = postgres_home.store()
    assert isinstance(store, PostgresStore)
    await store.open()
    try:
        weeks = [partition_of(RECORDED)]
        await _make_weeks(store, weeks)
        await ended(store, opening("run_1", "s1"), SPOKEN)
        await postgres_home.pass_time(WEEK_MS / 1000)
        weeks.append(partition_of(RECORDED + WEEK_MS))
        await _make_weeks(store, weeks[1:])
        await ended(store, opening("run_2", "s2"), at=NOW + WEEK_MS)
        await ended(store, opening("run_3", "s3"), at=NOW + 2 * WEEK_MS)  # kept, of the same week
        await postgres_home.pass_time(WEEK_MS / 1000)
        assert (await store.expire(NOW + WEEK_MS + DAY, NOW, 10)).counts["threads"] == 2
        swept = await store.sweep(NOW)
        assert swept.counts == {"swept_runs": 2, "events": 2, "weeks": 1}
        assert not await store.sweep(NOW)
        names = [row["name"] for row in await store._pool.fetch(_WEEKS)]
        assert weeks[0].name not in names
        assert weeks[1].name in names
        assert len(await store.read("run_3", 0, 10)) == 2
    finally:
        await store.close()


_WEEKS = (
    "SELECT c.relname AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = 'agui_bridge.events'::regclass"
)


async def _make_weeks(store: PostgresStore, weeks: list[Partition]) -> None:
    names = {row["name"] for row in await store._pool.fetch(_WEEKS)}
    async with store._pool.connection() as connection, transaction(connection):
        for week in weeks:
            if week.name not in names:
                for statement in statements_for(week):
                    await connection.execute(statement)


async def test_an_upload_that_nobody_used_goes_when_its_time_is_over(store: Store, tmp_path: Path):
    blobs = FolderBlobs(tmp_path / "artifacts")
    kept = Kept(store, blobs, RetentionPolicy(None, None, 86400), 0.5)
    shelf = MediaShelf(store, blobs, kept.clock, CountingIds())
    (tmp_path / "cat.png").write_bytes(b"cat")
    old = await shelf.upload(Principal(ME.owner_id), "cat.png", "image/png", tmp_path / "cat.png")
    assert not (await kept.keeper.keep()).gone.database
    assert await shelf.find(old.media_id) == old
    later = Kept(store, blobs, RetentionPolicy(None, None, 86400), 2)
    assert (await later.keeper.keep()).gone.as_payload() == {"database": {"media": 1}, "artifact_files": 1}
    assert await shelf.find(old.media_id) is None
    assert not (await later.keeper.keep()).gone.database


async def test_everything_of_an_owner_is_also_what_they_uploaded(store: Store, tmp_path: Path):
    blobs = FolderBlobs(tmp_path / "artifacts")
    kept = Kept(store, blobs, RetentionPolicy(None, None, None), 1)
    shelf = MediaShelf(store, blobs, kept.clock, CountingIds(), inline_bytes=2)
    run = await ended(store, opening("run_1", "s1"))
    (tmp_path / "dog.png").write_bytes(b"dog")
    part = {"type": "image", "source": data_source(b"cat", "image/png"), "metadata": {"filename": "a/cat.png"}}
    [made] = [each for each in await shelf.kept(ME, run.thread_id, [part]) if not isinstance(each, str)]
    upload = await shelf.upload(Principal(ME.owner_id), "dog.png", "image/png", tmp_path / "dog.png")
    counts = await export(store, kept.shelf, ME, tmp_path / "export.zip")
    assert counts["media"] == 2
    with ZipFile(tmp_path / "export.zip") as archive:
        assert archive.read(f"media/{made['source']['id']}") == b"cat"
        assert archive.read(f"media/{upload.media_id}") == b"dog"
    receipt = await kept.erasure.owner(ME, 1)
    assert (receipt.database.counts["media"], receipt.artifact_files) == (2, 2)
    assert files_in(tmp_path / "artifacts") == []
