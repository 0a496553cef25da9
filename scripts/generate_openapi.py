"""docs/openapi.yaml: what the server gives at `/openapi.json`, as a file to read and to make clients from."""

from __future__ import annotations

from typing import Final

import yaml

from agui_bridge.bridge import AGENT_PATH
from agui_bridge.web.openapi import openapi

_HEAD: Final = "# Written by scripts/generate_docs.py from agui_bridge/web/openapi.py.\n"


class _Plain(yaml.SafeDumper):
    """Writes out what occurs twice: anchors are no help to a reader."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def page(now: str) -> str:
    """The whole file; nothing of what it holds now stays."""
    return _HEAD + yaml.dump(openapi(AGENT_PATH), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=118)
