"""What a client says that it takes (`Accept`), as far as the two forms of a stream are concerned. Pure.

Protobuf is for those who name it. A bare wildcard admits it too, but that is what curl and most HTTP libraries send
without a thought, and their users want to read text; so wildcards get server-sent events. So does everybody else:
whoever asks for something that is neither is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agui_bridge.wire import PROTO_MEDIA_TYPE

_MOST: Final = 8192
"""Characters; a longer header is no client's that wants something particular."""
_QUOTED: Final = r'"(?:[^"\\]|\\.?)*(?:"|$)'
_RANGE: Final = re.compile(rf'(?:[^,"]|{_QUOTED})+', re.DOTALL)
_MEMBER: Final = re.compile(rf'(?:[^;"]|{_QUOTED})+', re.DOTALL)
_WEIGHT: Final = re.compile(r"q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)
_FULL: Final = _WEIGHT.fullmatch("q=1")


def names_protobuf(accept: Iterable[str]) -> bool:
    """Whether these `Accept` headers name protobuf with a weight above zero.

    Which of several is liked better is not asked. A range with a parameter is another media type, and one with a
    weight that is none is not understood: neither counts.
    """
    header = ",".join(accept)
    return len(header) <= _MOST and any(map(_is_protobuf, _RANGE.findall(header)))


def _is_protobuf(media_range: str) -> bool:
    members = [member.strip() for member in _MEMBER.findall(media_range)]
    if not members or members[0].lower() != PROTO_MEDIA_TYPE:
        return False
    weight = _WEIGHT.fullmatch(members[1]) if len(members) > 1 else _FULL
    return weight is not None and float(weight[1]) > 0
