"""What programs do, from their syntax trees: one small program for each rule, and for what must not trigger it."""

from __future__ import annotations

import pytest

from harness.audit.flow import OPERATIONS, analyse

ROWS = "rows = [tuple(map(int, l.split('\\t')[:2])) for l in list(open('/graph/edges/03.tsv'))[1:]]\n"
SCAN = "import json\nrecords = [json.loads(l) for l in open('/graph/nodes/0000.jsonl')]\n"


def operations(source: str, *arguments: str) -> set[str]:
    found = analyse(source, arguments).operations
    assert found <= set(OPERATIONS)
    return set(found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Node scans.
        ("for l in open('/graph/nodes/0000.jsonl'): print(l)", {"node_scan"}),
        ("import glob\nfor p in glob.glob('/graph/nodes/*'):\n  with open(p) as f: n = len(list(f))", {"node_scan"}),
        ("from pathlib import Path\nfor p in Path('/graph/nodes').iterdir(): p.read_text().split()", {"node_scan"}),
        ("for i, l in enumerate(open('/graph/nodes/0000.jsonl')):\n  if i > 3: break", set()),
        ("print(next(open('/graph/nodes/0000.jsonl')))", set()),
        ("f = open('/graph/nodes/0000.jsonl')\nprint(f.readline(), f.read(500))", set()),
        ("from itertools import islice\nprint(list(islice(open('/graph/nodes/0000.jsonl'), 5)))", set()),
        ("import json\nprint(len(json.load(open('/graph/schema.json'))['nodes']))", set()),
        # One hop.
        (ROWS + "print([t for s, t in rows if s == 5])", {"one_hop"}),
        (ROWS + "for s, t in rows:\n  if s != 5: continue\n  print(t)", {"one_hop"}),
        (ROWS + "adj = {}\nfor s, t in rows: adj.setdefault(s, []).append(t)\nprint(adj[5])", {"one_hop"}),
        (ROWS + "from collections import Counter\nprint(len(Counter(s for s, t in rows)))", set()),
        (ROWS + "print(len([1 for s, t in rows if s == t]))", set()),
        ("for l in open('/graph/edges/03.tsv'):\n  if l.startswith('5\\t'): print(l)", {"one_hop"}),
        ("import csv\nfor r in csv.DictReader(open('/graph/edges/03.tsv')):\n  if r['kind'] == 'IDA': print(r)", set()),
        ("import csv\nfor r in csv.reader(open('/graph/edges/03.tsv')):\n  if r[0] == 'source': continue", set()),
        # More hops.
        (ROWS + "a = {t for s, t in rows if s == 5}\nprint([t for s, t in rows if s in a])", {"multi_hop"}),
        (ROWS + "x = {5}\nfor _ in range(2):\n  x = {t for s, t in rows if s in x}", {"multi_hop"}),
        (ROWS + "def step(x): return {t for s, t in rows if s in x}\nprint(step({5}), step({6}))", {"one_hop"}),
        (ROWS + "def step(x): return {t for s, t in rows if s in x}\nprint(step(step({5})))", {"multi_hop"}),
        (ROWS + "for s, t in rows:\n  if s == 5:\n    for s2, t2 in rows:\n      if s2 == t: print(t2)", {"multi_hop"}),
        # Sets.
        ("a, b = {1}, {2}\nprint(a & b)", {"set_operation"}),
        ("print(set([1]).intersection([2]))", {"set_operation"}),
        ("a = {1}\na |= {2}", {"set_operation"}),
        ("a, b = [1], [2]\nprint([x for x in a if x not in b])", {"set_operation"}),
        ("import re\nprint(re.I | re.M, 1 & 3, 5 - 2)", set()),
        ("seen = set()\nfor x in 'abc':\n  if x not in seen: seen.add(x)", set()),
        # Ranking.
        ("print(sorted({}, key=lambda x: -x))", {"ranking"}),
        ("from collections import Counter\nprint(Counter('ab').most_common(3))", {"ranking"}),
        ("import heapq\nprint(heapq.nlargest(3, [(1, 2)]))", {"ranking"}),
        ("print(sorted((n, c) for c, n in {}.items()))", {"ranking"}),
        ("print(sorted([3, 1]), max([1, 2]), sorted([], key=lambda r: r['name'].lower()))", set()),
        ("from collections import Counter\nc = Counter()\nc['a'] += 1", set()),
        # Records by id.
        (SCAN + "print([r for r in records if r['node_id'] in (5, 6)])", {"node_scan", "id_check"}),
        (SCAN + "names = {r['node_id']: r['name'] for r in records}\nprint(names[55])", {"node_scan", "id_check"}),
        ("i = 123456\nprint(open(f'/graph/nodes/{i // 10000:04d}.jsonl').read())", {"id_check"}),
        (SCAN + "print([r for r in records if r['name'] == 'x'])", {"node_scan"}),
        (ROWS + SCAN + "a = {t for s, t in rows if s == 5}\nprint([r for r in records if r['node_id'] in a])",
         {"one_hop", "node_scan"}),
        # The graph tools.
        ("import kbtools\nkb = kbtools.Client('s')\nprint(kb.neighbors(5))", {"one_hop"}),
        ("import kbtools\nkb = kbtools.Client('s')\nprint(kb.neighbors(kb.neighbors(5)))", {"multi_hop"}),
        ("import kbtools\nkb = kbtools.Client('s')\nprint(kb.search('x'), kb.get_node(5))", {"id_check"}),
    ],
)  # fmt: skip
def test_operations(source: str, expected: set[str]) -> None:
    assert operations(source) == expected


def test_arguments_are_ids_too() -> None:
    source = ROWS + "import sys\nprint([t for s, t in rows if s == int(sys.argv[1])])"
    assert analyse(source, ["77"]).ids == {77}


def test_which_numbers_are_ids() -> None:
    source = ROWS + "limit = 20\nx = 431\nprint([t for s, t in rows if s == x][:5], range(9), [1403, 2773])"
    assert analyse(source).ids == {431, 1403, 2773}


def test_modules_of_the_agents_own() -> None:
    modules = {
        "kg": ROWS + "def step(x): return [t for s, t in rows if s in x]\nif __name__ == '__main__': step(step(1))"
    }
    assert analyse("import kg\nkg.step([5])", modules=modules).operations == {"one_hop"}
    assert analyse("from kg import step as go\ngo(go([5]))", modules=modules).operations == {"multi_hop"}
    assert analyse("import kg", modules={"kg": "import kg\nthis is no Python"}).operations == set()


def test_files_that_are_written() -> None:
    source = (
        "from pathlib import Path\ncode = 'print(1)'\nopen('a.py', 'w').write(code)\n"
        "with open('b.py', mode='w') as f: f.write(code + '\\n')\nPath('c.py').write_text(code)\nopen('d').read()"
    )
    assert dict(analyse(source).written) == {"a.py": "print(1)", "b.py": "print(1)\n", "c.py": "print(1)"}


@pytest.mark.parametrize(
    "source",
    ["print(", "x = $i", "\0", "(" * 20_000, "-" * 199_000 + "1", "a" * 300_000, "[" * 190 + "]" * 190, "x." * 60_000],
)
def test_what_cant_be_read_is_told(source: str) -> None:
    analysis = analyse(source)
    assert analysis.operations == set()


@pytest.mark.parametrize(
    "source",
    [
        "def f(x): return f(f(f(f(x))))\nf(f(f(1)))",
        "".join(f"{' ' * depth}for x{depth} in y:\n" for depth in range(18)) + " " * 18 + "z = x1",
        "".join(f"def f{n}(): " + f"f{n - 1}(); " * 9 + "\n" for n in range(1, 40)) + "f39()",
        "x = " + "[" * 80 + "1" + " for a in b]" * 80,
    ],
)
def test_large_programs_take_a_bounded_number_of_steps(source: str) -> None:
    assert analyse(source).tree is not None  # and the test ends
