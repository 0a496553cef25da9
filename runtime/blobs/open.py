"""From a setting to the place where artifacts lie."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from runtime.blobs import Blobs
from runtime.blobs.contents import ContentBlobs
from runtime.blobs.folder import FolderBlobs
from runtime.journal.store import Store

DATABASE = "database"
_SQLITE = "sqlite:///"


def blobs_for(place: str | None, url: str | None, store: Store) -> Blobs:
    """The blobs of a store: in a folder (a path) or in the store itself (`database`).

    Without a word a SQLite file has them in the folder `PATH.artifacts` beside it; other stores have them in
    themselves, because a folder would not be shared as they are.
    """
    if place is not None:
        return ContentBlobs(store) if place == DATABASE else FolderBlobs(Path(place))
    if url is not None and url.startswith(_SQLITE):
        path = Path(unquote(url.removeprefix(_SQLITE))).resolve()
        return FolderBlobs(path.with_name(f"{path.name}.artifacts"))
    return ContentBlobs(store)
