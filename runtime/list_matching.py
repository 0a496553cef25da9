"""Which entries of a list are still in it after a change.

Pure. Entries are clean JSON. Parts that both lists share as one object are known again without looking into them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from operator import lt

from runtime.canonical import Json, canonical

_CONTAINERS = (dict, list)


def stayed(before: Sequence[Json], after: Sequence[Json]) -> tuple[list[tuple[int, int]], bool]:
    """The entries that stayed in their order, as pairs of a place before and a place after, both rising; and whether
    others stayed that moved. An entry that is there several times stays as often as it is in both."""
    shared = set(map(id, before)).intersection(map(id, after))
    places = {key: place for place, key in enumerate(_keys(before, shared))}
    found = [(places[key], place) for place, key in enumerate(_keys(after, shared)) if key in places]
    rising = _longest_rising([place for place, _ in found])
    return [found[index] for index in rising], len(rising) < len(found)


def _keys(entries: Sequence[Json], shared: set[int]) -> list[Hashable]:
    """What each entry is known by, which is unique within its list."""
    keys: list[Hashable] = [
        id(entry) if id(entry) in shared and entry.__class__ in _CONTAINERS else canonical(entry) for entry in entries
    ]
    return keys if len(set(keys)) == len(keys) else _numbered(keys)


def _numbered(keys: list[Hashable]) -> list[Hashable]:
    """The keys, those that come again with how often they have been there."""
    seen: dict[Hashable, int] = {}
    numbered: list[Hashable] = []
    for key in keys:
        times = seen[key] = seen.get(key, 0) + 1
        numbered.append(key if times == 1 else (key, times))
    return numbered


def _longest_rising(numbers: Sequence[int]) -> Sequence[int]:
    """The places of a longest rising choice of these numbers, which differ."""
    if all(map(lt, numbers, numbers[1:])):
        return range(len(numbers))
    ends: list[int] = []
    """The smallest number with which a rising choice of each length ends."""
    at: list[int] = []
    """And its place."""
    earlier: list[int] = []
    """What stands before each number in its choice, -1 for nothing."""
    for place, number in enumerate(numbers):
        length = bisect_left(ends, number)
        earlier.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        at[length : length + 1] = [place]
    chosen: list[int] = []
    place = at[-1]
    while place >= 0:
        chosen.append(place)
        place = earlier[place]
    return chosen[::-1]
