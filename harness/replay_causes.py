"""Why a command printed something else the second time: the causes that say nothing about the command or the graph.

Each cause but `damaged` and those that are read from how a call ended is a way to normalise a text; where both texts
are then the same, that cause explains the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

DAMAGED = "damaged"
CAUSES: Mapping[str, str] = {
    "limit": "a limit of time, CPU or memory ended one of the two",
    "view": "the whole output is the same, but another part of it was shown",
    "time": "dates, times of day or durations",
    "process": "process ids",
    "user": "the sandbox's user, which has another number each time",
    "progress": "the meter of a download that never was",
    "address": "addresses of objects in memory",
    "temporary": "names of temporary files",
    "disk": "sizes and free space of file systems, dates and owners of files",
    "traceback": "the form of a traceback: another version of Python",
    "order": "the order of lines or of items (rg's threads, a set)",
    "order, then cut": "the same, and then only a part was kept (head, tail)",
    "random": "random numbers",
    DAMAGED: "a line before it can't be read, so a command that it may rest on was not run again",
}
_LIMITS = ("timeout", "oom", "cpu_limit", "pid_limit", "output_limit", "killed")

_TIMES = (
    re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z| ?[+-]\d\d:?\d\d)?)?"),
    re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{5,30}?\d{4}\b"),
    re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +(\d\d:\d\d|\d{4})\b"),
    re.compile(r"\b\d{1,2}:\d\d(:\d\d(\.\d+)?)?\b"),
    re.compile(r"\b\d+m\d+[.,]\d+s\b"),
    re.compile(r"\b\d+(\.\d+)?(e-?\d+)? ?(s|ms|us|µs|ns|sec|secs|second|seconds|milliseconds|minutes|elapsed)\b"),
    re.compile(r"\b1[6-9]\d{8}(\.\d+)?\b"),  # seconds since 1970
    re.compile(r"(?i)\b(elapsed|took|time|seconds|in)[:=]? *\d+\.\d+\b"),
)
_PROCESSES = (
    re.compile(r"(?i)\b(pid|ppid|process|job)[ :=#]*\d+"),
    re.compile(r"/proc/\d+"),
    re.compile(r"^\[\d+\]( \d+)?", re.MULTILINE),
    re.compile(r"(?<=: line )\d+: +\d+ "),
)
_USERS = (
    re.compile(r"\b(uid|gid|groups)=\d+(\(\w*\))?"),
    re.compile(r"^(\w+:\w?:)\d+:(\d+:)?", re.MULTILINE),  # of /etc/passwd and /etc/group
)
_USER_CALLS = re.compile(r"\b(get(e)?[ug]id|getpwuid|getgroups|id -\w+|\$\{?E?UID)\b")
_USER_NUMBER = (re.compile(r"\b\d{3,10}\b"),)
_METERED = re.compile(r"\b(curl|wget)\b")
_METER = (re.compile(r"^ +% Total +% Received .*\n +Dload .*\n", re.MULTILINE), re.compile(r"\r[ \d:-]*"))
_ADDRESSES = (re.compile(r"0x[0-9a-fA-F]{6,}"),)
_TEMPORARY = (re.compile(r"/tmp/[\w./-]+"), re.compile(r"\btmp[\w]{6,}\b"))  # noqa: S108 - a pattern, no file
_NUMBERS = (re.compile(r"[\d.,]+[KMGT%]?"), re.compile(r" +"))
_DISK_COMMANDS = re.compile(
    r"\b(df|du|stat|free|ls +-\w*[lsi]\w*|find\b.*-(ls|printf|size)|getsize|disk_usage|st_\w+)\b"
)
_CLOCKS = re.compile(r"\b(date|time|uptime|perf_counter|monotonic|datetime|timeit|process_time|SECONDS)\b")
_RANDOM = re.compile(r"\b(random|RANDOM|shuf|uuid\w*|urandom|secrets|mktemp|tempfile)\b")
_UNORDERED = re.compile(r"\b(rg|find|xargs +-P|parallel|set|frozenset|as_completed|listdir|glob|iterdir)\b")
_PARTS = re.compile(r"\|\s*(head|tail|sed -n|awk)\b|\[:\d+\]|\bislice\b|\brg\b.*(-m|--max-count)")
_TRACEBACK = "Traceback (most recent call last):"
_ITEM = re.compile(r"[^\s,;{}\[\]()]+")


def explain(
    command: str,
    texts: tuple[str, str],
    wholes: tuple[bytes | None, bytes | None] = (None, None),
    terminations: tuple[str | None, str | None] = (None, None),
) -> str | None:
    """The cause (of CAUSES) of a difference between the recorded and the replayed text, None if none is known.

    `wholes` are the complete outputs where they are at hand. Several causes that explain it only together are joined
    with " + ".
    """
    if any(ended in _LIMITS for ended in terminations):
        return "limit"
    old, new = texts
    if wholes[0] is not None and wholes[1] is not None:
        if wholes[0] == wholes[1]:
            return "view"
        old, new = (whole.decode("utf-8", "replace") for whole in wholes if whole is not None)
    steps = [(cause, normal) for cause, applies, normal in _NORMALISERS if applies is None or applies.search(command)]
    for cause, normal in steps:
        if normal(old) == normal(new):
            return cause
    found = []
    for cause, normal in steps:
        changed = normal(old), normal(new)
        if changed != (old, new):
            found.append(cause)
        old, new = changed
        if old == new:
            return " + ".join(found)
    if _UNORDERED.search(command) and _PARTS.search(command):
        return "order, then cut"
    return "random" if _RANDOM.search(command) else None


def _without(patterns: Sequence[re.Pattern[str]], stand_in: str) -> Callable[[str], str]:
    def normal(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(stand_in, text)
        return text

    return normal


def _in_order(text: str) -> str:
    """Lines sorted, and items within lines too."""
    return "\n".join(sorted(" ".join(sorted(_ITEM.findall(line))) for line in text.split("\n")))


def _without_frames(text: str) -> str:
    """The text without the indented lines of tracebacks: files, source, and the marks below it."""
    kept, inside = [], False
    for line in text.split("\n"):
        inside = line == _TRACEBACK or (inside and line.startswith(" "))
        if not inside or line == _TRACEBACK:
            kept.append(line)
    return "\n".join(kept)


_NORMALISERS: tuple[tuple[str, re.Pattern[str] | None, Callable[[str], str]], ...] = (
    ("user", None, _without(_USERS, "<user>")),
    ("user", _USER_CALLS, _without((*_USERS, *_USER_NUMBER), "<user>")),
    ("time", _CLOCKS, _without(_TIMES, "<time>")),
    ("time", re.compile(r"\bls\b|\btouch\b|\bstat\b"), _without(_TIMES, "<time>")),
    ("process", None, _without(_PROCESSES, "<process>")),
    ("progress", _METERED, _without(_METER, "")),
    ("address", None, _without(_ADDRESSES, "<address>")),
    ("temporary", _RANDOM, _without(_TEMPORARY, "<file>")),
    ("traceback", None, _without_frames),
    ("disk", _DISK_COMMANDS, _without((*_TIMES, *_NUMBERS), " ")),
    ("order", _UNORDERED, _in_order),
)
