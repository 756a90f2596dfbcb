"""The page of `harness view` in a real browser: nothing of a trajectory runs in it, and it does what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from exporter import Export
from harness.view.server import ViewServer
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.browser import chromium
from tests.support.saved import Ask, make_export
from tests.support.viewing import hostile_run, viewing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, NARROW = (1366, 800), (420, 860)
# Elements that the page never has, and attributes that run something.
FOREIGN = """() => {
  const foreign = ['IMG', 'IFRAME', 'svg', 'OBJECT', 'EMBED', 'STYLE'], own = new URL('main.js', document.baseURI).href;
  const runs = (a) => /^on|^style$|^srcdoc$/.test(a.name) || /^\\s*javascript:/i.test(a.value);
  return [...document.querySelectorAll('*')].filter((node) => foreign.includes(node.tagName)
    || (node.tagName === 'SCRIPT' && node.src !== own)
    || [...node.attributes].some(runs)).map((node) => node.outerHTML);
}"""


class Watch:
    """What a page did that it shouldn't: errors, dialogs, requests elsewhere."""

    def __init__(self, page: Page, server: ViewServer) -> None:
        self.found: list[str] = []
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("console", lambda message: self.found.append(f"console: {message.text}"))
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.look(request.url, server.url))
        page.on("popup", lambda _: self.found.append("popup"))

    def look(self, url: str, ours: str) -> None:
        if not url.startswith(ours):
            self.found.append(f"request: {url}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    with viewing(hostile_run(tmp_path_factory.mktemp("hostile") / "x")) as server:
        yield server


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    """Two runs of the same questions: q1 is a hit in one and a miss in the other."""
    folder = tmp_path_factory.mktemp("ordinary")
    export: Export = make_export(folder, "g", [Ask("q1", (7, 8), query="first?"), Ask("q2", (30,), query="second?")])
    rows = "\n".join(f"row {number} of many" for number in range(100, 190))
    first = [
        Step("rg -n node /graph/nodes", output="node 7 and node 12", says="I look."),
        Step("cat <<'PY' > a.py\nimport json\nPY", output=f"{rows}\nthe last is 8", clear=(1,)),
    ]
    attempts = {"q1": [Attempt(first, ids=(7, 12))], "q2": [Attempt([Step("true")], ids=(1,))]}
    make_audited_run(folder / "one", export, attempts)
    make_audited_run(folder / "two", export, {"q1": [Attempt([Step("true", output="node 7")], ids=(9,))]})
    with viewing(folder / "one", folder / "two") as server:
        yield server


@pytest.fixture
def opened(browser: Browser) -> Iterator[Any]:
    contexts = []

    def open_page(server: ViewServer, size: tuple[int, int] = WIDE, scheme: str = "light") -> tuple[Page, Watch]:
        viewport: Any = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        watch = Watch(page, server)
        page.goto(server.url)
        page.wait_for_selector("table.questions tbody tr")
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


def open_everything(page: Page) -> None:
    """Click every button that shows more, until there is none."""
    button = page.locator("button.more:visible:text-matches('^show'), button.whole:visible")
    while button.count():
        button.first.click()
        page.wait_for_function("() => !document.querySelector('button:disabled')")


def fits(page: Page) -> bool:
    """Whether nothing sticks out at the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_hostile_run_runs_nothing_and_the_layout_holds(
    hostile: ViewServer, opened: Any, size: tuple[int, int]
) -> None:
    page, watch = opened(hostile, size)
    assert page.evaluate(FOREIGN) == []
    assert fits(page)
    page.locator("tr.open a").first.click()
    page.wait_for_selector("section.turn[data-name=end]")
    open_everything(page)
    for summary in page.locator("summary").all():
        summary.click()
    assert fits(page)
    assert page.evaluate(FOREIGN) == []
    text = page.locator("main").text_content()
    assert text is not None
    assert "<script>window.pwned=1</script>" in text
    assert "\\x1b]0;owned\\x07\\x1b[2J" in text
    assert not {"\x1b", "\x07", "\u202e", "\u2028"} & set(text)
    page.locator("pre.output a.node").first.click()
    page.wait_for_selector("#node dl")
    assert "<img src=x" in (page.locator("#node").text_content() or "")
    assert page.evaluate(FOREIGN) == []
    assert fits(page)
    page.mouse.move(200, 200)
    assert page.evaluate("window.pwned === undefined")
    assert "<script>" in page.title()
    assert watch.found == []


def test_the_policy_refuses_markup_and_code_from_strings(ordinary: ViewServer, opened: Any) -> None:
    page, watch = opened(ordinary)
    # Later, as the page itself would: what the debugger evaluates may use eval.
    tries = """() => new Promise((resolve) => setTimeout(() => resolve([
        () => { document.body.innerHTML = '<b>x</b>' }, () => eval('1'), () => new Function('1'),
    ].map((one) => { try { one(); return 'done' } catch (error) { return error.name } }))))"""
    assert page.evaluate(tries) == ["TypeError", "EvalError", "EvalError"]
    page.evaluate("""() => new Promise((resolve) => {
        const script = document.createElement('img'); script.onerror = resolve; script.src = 'http://127.0.0.2:9/x.png';
        document.body.append(script); })""")
    assert any("Content Security Policy" in text for text in watch.found)


def test_the_list_and_its_filters(ordinary: ViewServer, opened: Any) -> None:
    page, watch = opened(ordinary)
    rows = page.locator("table.questions tbody tr")
    assert rows.count() == 4
    page.wait_for_function("() => !document.querySelector('.questions').textContent.includes('… ')")
    assert "hit" in rows.nth(0).inner_text()
    assert "search" in rows.nth(1).inner_text()
    assert "selection" in rows.nth(2).inner_text()
    assert "open" in rows.nth(3).inner_text()
    page.get_by_label("verdict").select_option("miss")
    page.wait_for_function("() => document.querySelectorAll('.questions tbody tr').length === 2")
    page.get_by_label("class").select_option("selection")
    page.wait_for_function("() => document.querySelectorAll('.questions tbody tr').length === 1")
    page.get_by_text("clear", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.questions tbody tr').length === 4")
    page.keyboard.press("/")
    page.keyboard.type("second")
    page.wait_for_function("() => document.querySelectorAll('.questions tbody tr').length === 2")
    page.keyboard.type("?")
    page.wait_for_function("() => location.hash.includes('second%3F')")
    assert page.evaluate("document.activeElement.value") == "second?"
    assert watch.found == []


def test_keys_turns_marks_and_the_node(ordinary: ViewServer, opened: Any) -> None:
    page, watch = opened(ordinary)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("section.turn[data-name=end]")
    assert page.locator("pre.output").nth(0).locator("a.node").all_inner_texts() == ["7", "12"]
    assert page.locator("pre.output a.node.gold").all_inner_texts() == ["7"]
    assert page.locator("pre.output a.node.given").all_inner_texts() == ["12"]
    assert page.locator("pre.code .t-k").all_inner_texts() == ["import"]
    assert "cleared before turn 2" in page.locator(".call").nth(0).inner_text()
    assert "the last is 8" not in page.locator(".call").nth(1).inner_text()
    for _ in range(3):
        page.keyboard.press("j")
    assert page.locator("section.turn:focus h2").inner_text().startswith("turn 2")
    page.keyboard.press("o")
    page.locator("pre.output a.node.gold").nth(1).wait_for()
    page.keyboard.press("g")
    page.keyboard.press("g")
    assert page.locator("a.node.found").inner_text() == "8"
    page.locator("pre.output a.node.gold").first.click()
    page.wait_for_selector("#node dl")
    assert page.locator("#node h2").inner_text() == "7 node 7"
    page.keyboard.press("Escape")
    assert page.locator("#node").is_hidden()
    page.get_by_text("first shown in turn 1, byte 19").click()
    assert page.locator("a.node.found").all_inner_texts() == ["7"]
    page.keyboard.press("n")
    page.wait_for_function("() => document.querySelector('h1')?.textContent.includes('second?')")
    page.keyboard.press("u")
    page.wait_for_selector("table.questions tbody tr")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    assert watch.found == []


@pytest.mark.parametrize(
    ("size", "scheme", "paper"), [(WIDE, "dark", "rgb(13, 17, 23)"), (NARROW, "light", "rgb(255, 255, 255)")]
)
def test_two_runs_side_by_side(
    ordinary: ViewServer, opened: Any, size: tuple[int, int], scheme: str, paper: str
) -> None:
    page, watch = opened(ordinary, size, scheme)
    page.locator("tr.open a").first.click()
    page.wait_for_selector("section.turn[data-name=end]")
    page.keyboard.press("s")
    page.wait_for_function("() => document.querySelectorAll('.panes.two section.turn[data-name=end]').length === 2")
    left, right = (page.locator(".pane").nth(number).bounding_box() for number in (0, 1))
    assert left and right
    assert (left["y"] == right["y"] and left["x"] < right["x"]) if size == WIDE else left["y"] < right["y"]
    assert "hit" in page.locator(".pane").nth(0).inner_text()
    assert "selection" in page.locator(".pane").nth(1).inner_text()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    assert fits(page)
    page.go_back()
    page.wait_for_selector(".panes.one section.turn")
    assert watch.found == []


# Events that only some modes have, and what the page says of them.
RARE: list[tuple[dict[str, Any], str]] = [
    (
        {
            "type": "client_call", "name": "search", "arguments": {"query": "<b>x"}, "program": "find.py",
            "characters": 70, "seconds": 0.1, "error": True,
        },
        'search {"query":"<b>x"} error70 characters, 0.1 s, called by find.py',
    ),
    (
        {
            "type": "program_run", "arguments": ["a b.py", "<i>"], "cwd": "/scratch", "blob": "d" * 64,
            "refused": False, "exit_code": 1, "termination": "exit", "wall": 2.5, "cpu": 1.5, "memory": 1 << 20,
        },
        f"python3 'a b.py' '<i>' exit, exit code 1, 2.5 s wall, 1.5 s cpu, 1.0 MiB, saved as blobs/{'d' * 64}",
    ),
    (
        {
            "type": "program_run", "arguments": ["-c", "1"], "cwd": "/scratch", "blob": None, "refused": True,
            "exit_code": None, "termination": None, "wall": 0.0, "cpu": 0.0, "memory": 0,
        },
        "python3 -c 1 refused: one had been run",
    ),
]  # fmt: skip


def test_events_that_only_some_modes_have(tmp_path: Path, opened: Any) -> None:
    export = make_export(tmp_path, "g", [Ask("q1", (7,))])
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt([Step("true")], ids=(7,))]})
    path = run / "trajectories" / "q1" / "0-0.jsonl"
    lines = path.read_text("utf-8").splitlines()
    place = next(number for number, line in enumerate(lines) if json.loads(line)["type"] == "result")
    shared = {"schema_version": 1, "seq": 0, "time": 1.0, "turn": 1}
    lines[place:place] = [json.dumps({**shared, **event}) for event, _ in RARE]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with viewing(run) as server:
        page, watch = opened(server)
        page.locator("tr.open a").first.click()
        page.wait_for_selector("section.turn[data-name=end]")
        assert page.locator("div.client").all_text_contents() == [drawn for _, drawn in RARE]
        assert page.evaluate(FOREIGN) == []
        assert watch.found == []
