"""The shape of the code base, read from its source: who imports whom, modes as data, sizes of files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "exporter", "sandbox", "prompts")
SOURCE_FOLDERS = (*PACKAGES, "tests", "bench")

# What scoring and auditing must do without: no Docker, no model's client, no network.
OFFLINE = ("harness.score", "harness.audit", "harness.compare", "harness.systems", "harness.report.page_audit")
FORBIDDEN_OFFLINE = {"docker", "openai", "httpx", "requests", "urllib3", "huggingface_hub", "socket", "http"}

# Names of modes, shipped and planned. Those with a hyphen mean nothing else, so the code doesn't hold them at all.
MODES = {
    *("files", "shell", "files-rg", "one-program", "no-edges", "tools", "tools-code", "retrieval", "ark"),
    *("ark-no-neighbors", "ark-no-query", "ark-no-types", "closed-book-ids", "closed-book-names", "bm25"),
    *("files-kernel",),
    *(path.stem for path in (ROOT / "prompts").glob("*.toml")),
}


def sources(root: Path, *folders: str) -> Iterator[tuple[str, Path]]:
    """(dotted module name, path) of every Python file below the folders."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(module: str, path: Path) -> set[str]:
    """Dotted names that a file imports anywhere in it, inside functions and under TYPE_CHECKING too."""
    names: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def wrong_imports(root: Path) -> list[str]:
    """Imports against the direction: the three lower packages import nothing of ours but themselves."""
    wrong = []
    for package in PACKAGES:
        allowed = set(PACKAGES) if package == "harness" else {package}
        for module, path in sources(root, package):
            for name in sorted(imports(module, path)):
                top = name.partition(".")[0]
                if top in {*SOURCE_FOLDERS, "examples", "docs"} - allowed:
                    wrong.append(f"{module} imports {name}")
    return wrong


def reachable(root: Path, start: str) -> dict[str, str]:
    """Every module, ours or not, that `start` leads to, with the module that imports it."""
    ours = dict(sources(root, *PACKAGES))
    found: dict[str, str] = {}
    queue = [start]
    while queue:
        module = queue.pop()
        for name in sorted(imports(module, ours[module])):
            parts = name.split(".")
            for length in range(1, len(parts) + 1):  # a package's __init__ runs too
                prefix = ".".join(parts[:length])
                if prefix in ours and prefix not in found:
                    queue.append(prefix)
                found.setdefault(prefix, module)
    return found


def mode_names_in_code(root: Path) -> list[str]:
    """Places where code compares with a mode's name, matches on one, or names one outside a docstring."""
    places = []
    for _, path in sources(root, *PACKAGES):
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            found: set[str] = set()
            if isinstance(node, ast.Compare):
                texts = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)}
                found = texts & MODES
                operands = {ast.unparse(part).rpartition("self.")[2] for part in (node.left, *node.comparators)}
                if texts and operands & {"mode", "mode.name", "mode_name"}:
                    found |= texts
            elif isinstance(node, ast.MatchValue):
                found = {ast.literal_eval(node.value)} & MODES if isinstance(node.value, ast.Constant) else set()
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "-" in node.value:
                found = {node.value} & MODES
            places += [f"{path.relative_to(root)}:{node.lineno}: {text}" for text in sorted(found)]
    return places


def test_the_three_lower_packages_import_nothing_of_ours_but_themselves() -> None:
    assert wrong_imports(ROOT) == []


@pytest.mark.parametrize("module", OFFLINE)
def test_scoring_and_auditing_reach_no_docker_no_client_and_no_network(module: str) -> None:
    if module not in dict(sources(ROOT, "harness")):
        pytest.skip(f"there is no {module}")
    found = reachable(ROOT, module)
    assert {name: by for name, by in found.items() if name in FORBIDDEN_OFFLINE} == {}


def test_no_code_knows_a_mode_by_name() -> None:
    assert mode_names_in_code(ROOT) == []


def test_files_stay_small() -> None:
    files = [path for _, path in sources(ROOT, *SOURCE_FOLDERS)]
    files += [path for folder in PACKAGES for path in (ROOT / folder).rglob("*.[ch]")]
    sizes = {str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in files}
    assert {path: lines for path, lines in sizes.items() if lines > 450} == {}
    assert sizes.get("harness/agent.py", 0) <= 200


def test_every_package_is_marked_as_typed() -> None:
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_checks_see_what_they_look_for(tmp_path: Path) -> None:
    write(tmp_path, "exporter/tables.py", "def f():\n    from harness import errors\n")
    write(tmp_path, "sandbox/deep/a.py", "from ..b import x\nfrom .. import c\nimport prompts\n")
    write(tmp_path, "prompts/__init__.py", "import os\n")
    write(tmp_path, "harness/score.py", "from harness.util import x\n")
    write(tmp_path, "harness/util/__init__.py", "def f():\n    import openai.types\n")
    write(
        tmp_path,
        "harness/agent.py",
        '"""Not in files-rg."""\n'
        "def f(mode, x, place):\n"
        "    if mode.name == 'mine': pass\n"
        "    if x in ('a', 'ark'): pass\n"
        "    match x:\n"
        "        case 'bm25': pass\n"
        "    y = {'files-rg': 1}\n"
        "    if place == 'elsewhere': return 'tools'\n",
    )
    assert wrong_imports(tmp_path) == [
        "exporter.tables imports harness",
        "exporter.tables imports harness.errors",
        "sandbox.deep.a imports prompts",
    ]
    assert reachable(tmp_path, "harness.score")["openai"] == "harness.util"
    assert sorted(mode_names_in_code(tmp_path)) == [
        "harness/agent.py:3: mine",
        "harness/agent.py:4: ark",
        "harness/agent.py:6: bm25",
        "harness/agent.py:7: files-rg",
    ]
