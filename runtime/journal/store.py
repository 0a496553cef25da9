"""The store: all that one database keeps for the runtime, as one port."""

from __future__ import annotations

from typing import Protocol

from runtime.journal import Journal
from runtime.journal.aliases import Aliases
from runtime.journal.artifacts import Artifacts
from runtime.journal.catalogue import Catalogue
from runtime.journal.deliveries import Deliveries
from runtime.journal.inbox import Inbox
from runtime.journal.interrupts import Interrupts
from runtime.journal.leases import Leases
from runtime.journal.media import Media
from runtime.journal.retention import Retention
from runtime.journal.trees import Trees
from runtime.journal.wakes import Wakes


class Store(
    Journal,
    Aliases,
    Leases,
    Inbox,
    Interrupts,
    Deliveries,
    Wakes,
    Catalogue,
    Artifacts,
    Media,
    Retention,
    Trees,
    Protocol,
):
    """What the supervisor needs: the facts, who is at work on them, hints when they change, and what there is."""
