"""Real pictures, small and large, and content parts that hold them."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from typing import Any

JsonObject = dict[str, Any]


def png(seed: int, side: int = 180) -> bytes:
    """A real PNG of noise, which no deflate makes smaller: some 97 KB at the usual size."""
    noise = random.Random(seed)
    rows = b"".join(b"\0" + noise.randbytes(side * 3) for _ in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def base64_of(data: bytes) -> str:
    """Bytes as a page writes them."""
    return base64.b64encode(data).decode()


def inline(data: bytes, mime_type: str = "image/png", kind: str = "image", **more: Any) -> JsonObject:
    """A part that holds its bytes."""
    return {"type": kind, "source": {"type": "data", "value": base64_of(data), "mimeType": mime_type}, **more}


def text(words: str) -> JsonObject:
    """A part of text."""
    return {"type": "text", "text": words}
