"""The build hook: a wheel is built with the demo's page in it, where Node.js is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):
    """Builds the page before a wheel's files are gathered; an editable install is quick and goes without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if (
            self.target_name != "wheel"
            or version == "editable"
            or not (Path(self.root) / "demo_client" / "src").is_dir()
        ):
            return
        sys.path.insert(0, self.root)
        from scripts.build_page import build

        if not build():
            self.app.display_warning("no Node.js 20 or newer: the wheel is built without the demo's page")
