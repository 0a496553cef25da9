"""The demo's web page: built files, served from the package under a policy that lets nothing else run or load.

The page is built from demo_client/ (`make page`, and by the build of a wheel). Where it has not been built, a page says
so, and how it is done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from agui_bridge.web.methods import Methods
from runtime.errors import NotFound

STATIC: Final = Path(__file__).parent / "static"
"""Where the built page lies; ignored by git, shipped in the wheel."""

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # the chat's components set styles on their elements
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_FOREVER: Final = "public, max-age=31536000, immutable"  # the names of assets hold a digest of their content

_NOT_BUILT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>agui-bridge: the page is not built</title></head>
<body><main><h1>The page is not built</h1>
<p>This server works; only its demo page is missing. With Node.js 20 or newer, in the clone:</p>
<pre>make page</pre>
<p>Then load this page again. A wheel that was built where Node.js is found has the page in it.</p>
<p>What the server can do without it: <a href="/openapi.json">openapi.json</a>.</p>
</main></body></html>
"""


class Page:
    """Serves the files of a built page. They are looked for at each request: the page may be built meanwhile."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder

    async def index(self, request: Request) -> Response:
        """`GET /`: the page, or 503 with how to build it."""
        index = self._folder / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, 503, {**_HEADERS, "cache-control": "no-store"})
        return FileResponse(index, headers={**_HEADERS, "cache-control": "no-cache"})

    async def asset(self, request: Request) -> Response:
        """`GET /assets/{name}`: a script, style or font of the page. Raises NotFound."""
        name: str = request.path_params["name"]
        file = self._folder / "assets" / name
        if name.startswith(".") or not file.is_file():
            raise NotFound("There is no such file of the page.")
        return FileResponse(file, headers={**_HEADERS, "cache-control": _FOREVER})

    @property
    def assets(self) -> Route:
        """The route of what the page loads; its names hold no slash, so none leads out of the folder."""
        return Route("/assets/{name}", Methods({"GET": self.asset}))
