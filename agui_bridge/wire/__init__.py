"""What goes over the wire, in which form: one module for each format.

Pure. The modules turn values into bytes and cursors into numbers; they know neither sockets nor runs.
"""

from __future__ import annotations

from typing import Final

SSE_MEDIA_TYPE: Final = "text/event-stream"
PROTO_MEDIA_TYPE: Final = "application/vnd.ag-ui.event+proto"
