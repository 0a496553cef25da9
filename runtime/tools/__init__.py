"""Tools: declaring them (`toolbox`, pure), what they see of a run (`context`), and executing them (`execute`).

Whether a call may run is decided in `runtime.gate`, which calls run together in `runtime.schedule`. Pure modules
import from the modules here, not from the package: executing waits.
"""

from __future__ import annotations

from runtime.tools.context import ToolContext
from runtime.tools.execute import Output, execute
from runtime.tools.files import read_file_tool
from runtime.tools.threads import ThreadLimiter
from runtime.tools.toolbox import InvalidArguments, Tool, Toolbox, ToolError, tool

__all__ = [
    "InvalidArguments",
    "Output",
    "ThreadLimiter",
    "Tool",
    "ToolContext",
    "ToolError",
    "Toolbox",
    "execute",
    "read_file_tool",
    "tool",
]
