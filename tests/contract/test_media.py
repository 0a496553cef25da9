"""Media on every store: named, found by whoever gave them, used once, and gone with what they belonged to."""

from __future__ import annotations

from dataclasses import replace

from runtime.canonical import digest_of
from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.store import Store
from tests.contract.test_retention import DAY, ME, NOW, begun, ended, opening

SOMEBODY = Owner("default", "somebody")


def medium(name: str, thread_id: str | None = None, data: bytes = b"cat", **more: str | int | None) -> Medium:
    given = Medium(
        name, ME.tenant_id, ME.owner_id, thread_id, None, "cat.png", "image/png", len(data), digest_of(data), NOW
    )
    return replace(given, **more)


async def test_a_medium_is_found_by_its_id_and_listed_with_its_thread(store: Store):
    run = await ended(store, opening("run_1", "s1"))
    first, second = medium("med_2", run.thread_id), medium("med_1", run.thread_id, b"dog", created_at=NOW + 1)
    await store.add_medium(first)
    await store.add_medium(second)
    await store.add_medium(replace(first, name="again.png"))
    assert await store.find_medium("med_2") == first
    assert await store.find_medium("med_9") is None
    assert await store.media_of_thread(run.thread_id) == [first, second]
    assert await store.media_of_thread("another") == []
    assert await store.is_named(first.digest)
    assert not await store.is_named("f")


async def test_an_upload_is_its_owners_and_is_known_by_its_id_after_it_was_used(store: Store):
    run = await ended(store, opening("run_1", "s1"))
    upload = medium("upl_1")
    await store.add_medium(upload)
    await store.add_medium(medium("upl_2", owner_id=SOMEBODY.owner_id))
    assert await store.uploads_of(ME) == [upload]
    assert await store.medium_of(ME, "upl_1") == upload
    assert await store.medium_of(SOMEBODY, "upl_1") is None
    used = medium("med_1", run.thread_id, given_id="upl_1")
    await store.add_medium(used)
    assert await store.uploads_of(ME) == []
    assert await store.medium_of(ME, "upl_1") == used
    assert await store.medium_of(ME, "med_1") == used
    assert await store.find_medium("upl_1") == used


async def test_nobody_uses_up_the_upload_of_another(store: Store):
    upload = medium("upl_1")
    await store.add_medium(upload)
    await store.add_medium(medium("med_1", "thr_9", owner_id=SOMEBODY.owner_id, given_id="upl_1"))
    assert await store.uploads_of(ME) == [upload]


async def test_media_go_with_their_thread_and_their_bytes_if_nothing_else_names_them(store: Store):
    old, new = await ended(store, opening("run_1", "s1")), await ended(store, opening("run_2", "s2"))
    await store.put_contents({digest_of(data): data for data in (b"alone", b"shared")})
    await store.add_medium(medium("med_1", old.thread_id, b"alone"))
    await store.add_medium(medium("med_2", old.thread_id, b"shared"))
    await store.add_medium(medium("med_3", new.thread_id, b"shared"))
    removed = await store.erase([old.thread_id])
    assert removed.counts["media"] == 2
    assert removed.digests == {digest_of(b"alone")}
    assert await store.content(digest_of(b"alone")) is None
    assert await store.content(digest_of(b"shared")) == b"shared"
    expired = await store.expire(NOW + DAY, NOW + DAY, 9)
    assert expired.counts["media"] == 1
    assert await store.content(digest_of(b"shared")) is None


async def test_what_belongs_to_no_thread_is_removed_when_its_time_is_over(store: Store):
    run = await begun(store, opening("run_1", "s1"))
    await store.put_contents({digest_of(data): data for data in (b"cat", b"dog", b"used")})
    await store.add_medium(medium("upl_1"))
    await store.add_medium(medium("upl_2", None, b"dog", created_at=NOW + DAY))
    await store.add_medium(medium("med_1", "thr_never_begun"))
    await store.add_medium(medium("med_2", run.thread_id, b"used"))
    assert not await store.remove_unused_media(0, NOW, 9)
    assert not await store.remove_unused_media(0, NOW + DAY, 9, SOMEBODY)
    removed = await store.remove_unused_media(0, NOW + DAY, 1)
    assert (removed.counts, removed.digests) == ({"media": 1}, frozenset())
    removed = await store.remove_unused_media(0, NOW + DAY, 9)
    assert (removed.counts, removed.digests) == ({"media": 1, "contents": 1}, {digest_of(b"cat")})
    assert [each.media_id for each in await store.uploads_of(ME)] == ["upl_2"]
    removed = await store.remove_unused_media(0, NOW + 2 * DAY, 9, ME)
    assert removed.counts == {"media": 1, "contents": 1}
    assert await store.content(digest_of(b"used")) == b"used"


async def test_a_medium_of_a_hidden_session_is_not_found(store: Store):
    run = await ended(store, opening("run_1", "s1"))
    await store.add_medium(medium("med_1", run.thread_id))
    await store.hide_session(ME, "s1", NOW)
    assert await store.find_medium("med_1") is None
