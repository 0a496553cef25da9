"""What strace wrote, as system calls with a beginning and an end in one order: that of the lines.

A call that another thread interrupted is two lines ("unfinished", "resumed"); its beginning is the first of them, its
end the second. `-yy` names every file descriptor, so that none needs to be followed from where it was opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

WRITES = frozenset({"write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg"})
SYNCS = frozenset({"fsync", "fdatasync"})
COMMAND = ("strace", "-f", "-ttt", "-yy", "-s", "65536", "-e", f"trace={','.join(sorted(WRITES | SYNCS))}", "-o")

_LINE = re.compile(r"(\d+) +[\d.]+ (.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>")
_CALL = re.compile(r"(\w+)\((?:\d+<(.*?)>(?=[,) ]))?", re.DOTALL)
_UNFINISHED = "<unfinished ...>"


@dataclass(slots=True)
class Call:
    """One system call: what `file` it was about, and the numbers of the lines at which it began and returned."""

    name: str
    file: str
    text: str
    began: int
    returned: int | None = field(default=None)
    result: int | None = field(default=None)

    @property
    def done(self) -> bool:
        """Whether it returned, and no error."""
        return self.returned is not None and self.result is not None and self.result >= 0


def read_trace(path: Path) -> list[Call]:
    """All calls of a trace, in the order in which they began."""
    calls: list[Call] = []
    open_by_thread: dict[str, Call] = {}
    for number, line in enumerate(path.read_text(errors="replace").split("\n")):
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        thread, said = found.groups()
        if (resumed := _RESUMED.match(said)) is not None:
            call = open_by_thread.pop(thread)
            assert call.name == resumed[1], line
            call.text += said[resumed.end() :]
        elif (begun := _CALL.match(said)) is not None:
            call = Call(begun[1], begun[2] or "", said, number)
            calls.append(call)
        else:
            continue
        if said.rstrip().endswith(_UNFINISHED):
            open_by_thread[thread] = call
        else:
            call.returned = number
            result = call.text.rpartition(" = ")[2].split()[0]
            call.result = int(result) if result.lstrip("-").isdecimal() else None
    return calls
