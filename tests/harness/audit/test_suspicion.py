"""What commands and programs try that a sandbox forbids, and what they may do."""

from __future__ import annotations

import ast

import pytest

from harness.audit.suspicion import of_command, of_program, sandbox_failures
from harness.audit.workbench import Workbench


def tried(command: str) -> set[str]:
    return {kind for one in Workbench().read(command).commands for kind in of_command(one)}


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("timeout 5 curl -s https://example.org", {"network"}),
        ("echo x > /dev/tcp/10.0.0.1/80", {"network"}),
        ("git clone https://example.org/x; git log", {"network"}),
        ("pip install pandas", {"network"}),
        ("echo x >> /graph/nodes/0000.jsonl", {"graph_write"}),
        ("sed -i s/a/b/ /graph/schema.json", {"graph_write"}),
        ("cd /graph && rm -rf nodes/../edges /graph/edges", {"graph_write"}),
        ("cp x /graph/", {"graph_write"}),
        ("dd if=x of=$GRAPH/x", {"graph_write"}),
        ("cat /etc/passwd", {"outside"}),
        ("ls -la ~ /", {"outside"}),
        ("find / -name '*.jsonl'", {"outside"}),
        ("rg answer_ids /home /var", {"outside"}),
        ("cat ../../root/x < /opt/y", {"outside"}),
        ("cat /proc/1/environ", {"outside"}),
        ("pkill -9 python", {"processes"}),
        ("kill -9 1", {"processes"}),
        ("unshare -r bash", {"processes"}),
        # What agents do all day.
        ("cat /graph/nodes/0000.jsonl > /scratch/x; cp /graph/schema.json .; ls /tmp /dev/shm", set()),
        ("rg '/etc/' /graph | sed -n '/^--/,$p' | awk '/usr/ {print}' 2>/dev/null", set()),
        ("echo /etc/passwd; printf '/home'", set()),
        ("sleep 5 & kill $! %1; wait", set()),
        ("/usr/bin/env python3 x.py; nproc; cat /proc/meminfo; rm -rf /scratch/*", set()),
        ("git diff --no-index a b; mkdir -p d; tee out.txt", set()),
    ],
)
def test_commands(command: str, kinds: set[str]) -> None:
    assert tried(command) == kinds


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("import socket", {"network"}),
        ("from urllib.request import urlopen", {"network"}),
        ("import urllib.parse, http.server", {"network"}),
        ("from urllib.parse import quote", set()),
        ("open('/graph/x', 'w').write('')", {"graph_write"}),
        ("open('/graph/x', mode='a+b')", {"graph_write"}),
        ("import shutil\nshutil.move('x', '/graph/nodes')", {"graph_write"}),
        ("from pathlib import Path\nPath('/graph/x').write_text('')", {"graph_write"}),
        ("open('/etc/shadow')", {"outside"}),
        ("import os\nfor x in os.walk('/'): pass", {"outside"}),
        ("from pathlib import Path\nPath('/root/.ssh').iterdir()", {"outside"}),
        ("import os, signal\nos.kill(1, signal.SIGKILL)", {"processes"}),
        ("import psutil", {"processes"}),
        ("open('/graph/nodes/0000.jsonl').read(); open('out', 'w'); 'a/b'.replace('/', '/etc')", set()),
        ("import os\nos.makedirs('/scratch/x'); os.remove('y')", set()),
    ],
)
def test_programs(source: str, kinds: set[str]) -> None:
    assert of_program(ast.parse(source)) == kinds


@pytest.mark.parametrize(
    ("output", "kinds"),
    [
        ("touch: cannot touch '/graph/x': Read-only file system", {"read_only"}),
        ("x\nbash: line 1: curl: command not found\ny", {"no_program"}),
        ("ModuleNotFoundError: No module named 'pandas'", {"no_module"}),
        ("OSError: [Errno 101] Network is unreachable", {"no_network"}),
        ("OSError: [Errno 28] No space left on device\nMemoryError", {"no_space", "no_memory"}),
        ('{"node_id":5,"name":"Permission denied"}', set()),
        ("5\tNetwork is unreachable\t7", set()),
        ("all fine", set()),
    ],
)
def test_messages_of_what_the_sandbox_forbids(output: str, kinds: set[str]) -> None:
    assert sandbox_failures(output.encode()) == kinds
