"""Following a tree: one reader's way through a root run and all below it, in the order of `root_seq`.

A root without children is followed as any run. Once it has children, its reader keeps a place in each run: what is
live comes from the tree's channel, everything else from the store, merged there as of one moment. Only whole
beginnings are given, so nothing that was committed before is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile

from runtime.errors import StoreError
from runtime.events import TERMINAL, ChildStarted, Record
from runtime.journal.channel import TreeChannel
from runtime.journal.compaction import Place
from runtime.journal.elsewhere import Stay
from runtime.journal.tail import Cursor, Tail


class TreeCursor(Cursor):
    """One reader's place in one tree, from its beginning. `root_after` is the `root_seq` of the last record given."""

    def __init__(self, tail: Tail, root_run_id: str):
        super().__init__(tail, root_run_id, 0)
        tail._count(root_run_id, 1)
        self.root_after = 0
        self._places: dict[str, int] = {}
        """The seq of the last record given of each run; empty while the root is followed alone."""
        self._marks: dict[str, Place] = {}
        self._tree: TreeChannel | None = None
        self._stays: dict[str, Stay] = {}

    async def next(self) -> list[Record]:
        """See `Cursor.next`; the records are those of the whole tree."""
        while not self._at_end:
            if not self._open:
                raise StoreError("The cursor was closed.", code="cursor_closed")
            records = await (self._of_tree() if self._places else self._of_root())
            if records:
                return records
        return []

    def close(self) -> None:
        """See `Cursor.close`."""
        super().close()
        self._leave_all()
        if self._tree is not None:
            self._tree.wake()

    # --- the root alone -------------------------------------------------------------------------------------------

    async def _of_root(self) -> list[Record]:
        if (tree := self._tail.tree(self.run_id)) is not None:
            self._tree = tree
            self._enter(tree.runs)
            return []
        channel = self._tail._channels.get(self.run_id, self._channel)
        records = await (self._from_store() if channel is None else self._from_channel(channel))
        if not records:
            return []
        own = records
        if records[-1].root_seq != records[-1].seq:
            own = list(takewhile(lambda record: record.root_seq == record.seq, records))
        given = self._advance(own, is_live=channel is not None) if own else []
        self.root_after = self.after
        joined = len(own) < len(records)
        if not self._at_end and (joined or channel is None):
            children = [each.event.run_id for each in own if isinstance(each.event, ChildStarted)]
            if joined:
                children += [run.run_id for run in await self._tail._store.runs_of_tree(self.run_id)]
            if children:  # be they begun or not
                self._enter(children)
        return given

    def _enter(self, runs: Sequence[str]) -> None:
        self._leave_elsewhere()
        self._places = {self.run_id: self.after, **{run_id: 0 for run_id in runs if run_id != self.run_id}}

    # --- the tree -------------------------------------------------------------------------------------------------

    async def _of_tree(self) -> list[Record]:
        tree = self._tree = self._tail.tree(self.run_id) or self._tree
        if tree is not None:
            self._leave_all()
            for run_id in tree.runs:
                self._places.setdefault(run_id, 0)
            if self.root_after >= tree.last:
                await self._wait_for(tree)
                return []
            if tree.covers(self.root_after):
                records = tree.behind(self.root_after, self._tail._page)
                if self._fit(records):
                    return self._given(records)
        return await self._stored(tree)

    async def _stored(self, tree: TreeChannel | None) -> list[Record]:
        news = {run_id: stay.news for run_id, stay in self._stays.items()}
        found = await self._tail._store.read_tree(self._places, self._tail._page)
        if records := self._known(found):
            return self._given(records)
        if tree is not None:
            if tree.last > self.root_after and not tree.over:
                raise self._gap()
            self._tree = None
            return []
        self._at_end = await self._tail._is_at_end(self.run_id, self._places[self.run_id])
        if self._at_end or not self._open:
            self._leave_all()
        else:
            await self._wait_elsewhere(news)
        return []

    async def _wait_for(self, tree: TreeChannel) -> None:
        if tree.over:
            self._tree = None
        else:
            await tree.wait()

    def _known(self, records: list[Record]) -> list[Record]:
        """The records up to the first that names a run whose own are not among them."""
        for count, record in enumerate(records, 1):
            if isinstance(record.event, ChildStarted) and record.event.run_id not in self._places:
                self._places[record.event.run_id] = 0
                return records[:count]
        return records

    def _fit(self, records: Sequence[Record]) -> bool:
        """Whether each goes on where its run was left: what the store has compacted meanwhile does not."""
        places = dict(self._places)
        for record in records:
            if places.get(record.run_id) != record.first_seq - 1:
                return False
            places[record.run_id] = record.seq
        return True

    def _given(self, records: list[Record]) -> list[Record]:
        given: list[Record] = []
        for record in records:
            run_id = record.run_id
            mark = self._marks.setdefault(run_id, Place())
            after = self._places[run_id]
            rest = mark.rest_of(record, after)
            if rest.first_seq != after + 1:
                raise self._gap()
            mark.passed([rest])
            self._places[run_id] = rest.seq
            given.append(rest)
        last = given[-1]
        self.root_after, self.after = last.root_seq, self._places[self.run_id]
        self._at_end = last.run_id == self.run_id and type(last.event) in TERMINAL
        if self._at_end:
            self._leave_all()
        return given

    # --- elsewhere ------------------------------------------------------------------------------------------------

    async def _wait_elsewhere(self, news: dict[str, int]) -> None:
        """Return when any run of the tree may have more, or when one is followed from now on."""
        new = [run_id for run_id in self._places if run_id not in self._stays]
        for run_id in new:
            self._stays[run_id] = self._tail.elsewhere.follow(run_id)
        if new:
            return
        waits = [
            asyncio.create_task(stay.wait(self._places[run_id], news[run_id])) for run_id, stay in self._stays.items()
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)

    def _leave_all(self) -> None:
        stays, self._stays = self._stays, {}
        for stay in stays.values():
            stay.leave()
