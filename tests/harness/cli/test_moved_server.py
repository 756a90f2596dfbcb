"""A run whose model server is at another address when the run is resumed: gone on with, recorded, and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.ledger import read_ledger
from harness.schemas import check_run
from harness.servers import where_asked
from tests.support.cli import Outcome, mistake, run_cli
from tests.support.runs import make_export
from tests.support.saved import Ask as Asked
from tests.support.saved import make_export as another_export
from tests.support.server import ScriptedServer, refuse, say

Ask = Callable[..., Outcome]
VLLM = {"id": "m", "object": "model", "owned_by": "vllm", "root": "/models/Qwen3-8B", "max_model_len": 40_960}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_export(tmp_path_factory.mktemp("moved")).path


@pytest.fixture
def ask(graph: Path, tmp_path: Path) -> Ask:
    """`harness run` of a mode without a sandbox over the three questions of split test, into one folder."""

    def run(*flags: str, **env: str) -> Outcome:
        command = ["run", "--graph", str(graph), "--mode", "closed-book-ids", "--split", "test", "--workers", "1"]
        return run_cli(*command, "--out", str(tmp_path / "run"), *flags, env=env)

    return run


@contextmanager
def serving(listed: dict[str, Any] | None = VLLM) -> Iterator[ScriptedServer]:
    models = [listed] if listed else [{"id": "m", "object": "model"}]
    with ScriptedServer(lambda _: say("ANSWER: [0]"), models=models) as server:
        yield server


@contextmanager
def stopped_run(ask: Ask, listed: dict[str, Any] | None = VLLM, *flags: str) -> Iterator[str]:
    """A run that a limit stopped after its first question; yields the address that its model was asked at."""
    with serving(listed) as server:
        done = ask("--model", "m", "--base-url", server.url, "--set", "run.tokens=1", *flags)
        assert done.code == 1, done
        url = server.url
    yield url


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((folder / "run" / "manifest.json").read_bytes())
    return found


def test_the_same_command_with_the_new_address_goes_on(ask: Ask, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with stopped_run(ask) as old, serving() as server:
        assert "servers" not in manifest(tmp_path)
        done = ask("--model", "m", "--base-url", server.url, "--resume")
        assert done.code == 0, done
        where = f"attempt 1 at {old}, from attempt 2 on at {server.url}"
        assert f"recorded in manifest.json: {where}" in done.stderr
        assert server.count == 2
        assert len(read_ledger(run)) == 3
        assert where_asked(manifest(tmp_path)) == where
        assert manifest(tmp_path)["model"]["endpoint"] == old
        assert list(check_run(run)) == []

        assert ask("--model", "m", "--base-url", server.url, "--resume").code == 0
        assert len(manifest(tmp_path)["servers"]) == 2  # the same address again is no move
        new = server.url
    assert where in run_cli("show", str(run)).stdout
    asked = {query: run_cli("show", str(run), query).stdout for query in ("q1", "q2")}
    assert f"the model was asked at {old}\n" in asked["q1"]
    assert f"the model was asked at {new}\n" in asked["q2"]
    assert where in run_cli("audit", str(run)).stdout
    assert [each["endpoint"] for each in orjson.loads(run_cli("audit", str(run), "--json").stdout)["servers"]] == [
        old,
        new,
    ]
    for form in ("text", "md", "html"):
        report = run_cli("report", str(run), "--format", form)
        assert report.code == 0, report
        text = (run / "report.html").read_text() if form == "html" else report.stdout + report.stderr
        assert where.replace("_", "\\_") in text, form


def test_a_run_at_one_address_says_nothing_of_addresses(ask: Ask, tmp_path: Path) -> None:
    with serving() as server:
        assert ask("--model", "m", "--base-url", server.url).code == 0
    for command in ("show", "audit", "report"):
        assert "asked at" not in run_cli(command, str(tmp_path / "run")).stdout


def test_several_moves_and_one_that_no_attempt_used(ask: Ask, tmp_path: Path) -> None:
    with stopped_run(ask) as first, serving() as second, serving() as third:
        for server in (second, third):  # the limit lets no attempt start
            assert ask("--model", "m", "--base-url", server.url, "--set", "run.tokens=1", "--resume").code == 1
        assert len(manifest(tmp_path)["servers"]) == 3
        assert ask("--model", "m", "--base-url", third.url, "--resume").code == 0
        assert where_asked(manifest(tmp_path)) == f"attempt 1 at {first}, from attempt 2 on at {third.url}"


@pytest.mark.parametrize("named", [("--base-url", "{}"), ("--set", "model.endpoint={}")])
def test_an_address_that_only_a_profile_changes_has_to_be_named(
    ask: Ask, tmp_path: Path, named: tuple[str, str]
) -> None:
    config = tmp_path / "config.toml"

    def profile(url: str) -> None:
        config.write_text(f'[models.mine]\nmodel = "m"\nendpoint = "{url}"\n')

    def run(*flags: str) -> Outcome:
        return ask("--model", "mine", *flags, HARNESS_CONFIG=str(config))

    with serving() as old, serving() as new:
        profile(old.url)
        assert run("--set", "run.tokens=1").code == 1
        profile(new.url)
        before = (tmp_path / "run" / "manifest.json").read_bytes()
        refused = run("--resume")
        mistake(refused, f'model.endpoint was "{old.url}", now "{new.url}"', "--base-url URL")
        assert (tmp_path / "run" / "manifest.json").read_bytes() == before
        assert run("--resume", named[0], named[1].format(new.url)).code == 0
        assert run("--resume").code == 0  # it is where the run is now
        assert [each["endpoint"] for each in manifest(tmp_path)["servers"]] == [old.url, new.url]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--model", "other"), 'model.name was "m", now "other"'),
        (("--set", "model.model=other"), 'model.model was "m", now "other"'),
        (("--set", "model.temperature=1.0"), "model.temperature was 0.0, now 1.0"),
        (("--set", "model.effort=low"), 'model.effort was null, now "low"'),
        (("--set", "model.prices.input=3.0"), "model.prices.input was null, now 3.0"),
        (("--set", "model.extra_body.top_k=3"), "model.extra_body.top_k was null, now 3"),
        (("--set", "model.window=20_000"), "model.window was 40960, now 20000"),
    ],
)
def test_what_can_change_answers_is_refused_at_the_new_address_too(
    ask: Ask, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    with (
        stopped_run(ask, VLLM, "--set", "model.temperature=0.0"),
        ScriptedServer([], models=[VLLM, {**VLLM, "id": "other"}]) as server,
    ):
        before = (tmp_path / "run" / "manifest.json").read_bytes()
        common = ("--model", "m", "--set", "model.temperature=0.0", "--base-url", server.url, "--resume")
        mistake(ask(*common, *flags), said)
        assert server.count == 0
        assert (tmp_path / "run" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (VLLM, {**VLLM, "root": "Qwen/Qwen3-8B"}, ""),  # the same in another place
        (VLLM, {**VLLM, "root": "m"}, ""),  # a server that says nothing but the id
        (VLLM, {**VLLM, "root": "Qwen/Qwen3-8B-AWQ"}, "had root /models/Qwen3-8B, now Qwen/Qwen3-8B-AWQ"),
        ({**VLLM, "root": "m"}, VLLM, ""),
        (
            {"id": "m", "meta": {"n_params": 8_000, "size": 16_000, "n_ctx": 40_960}},
            {"id": "m", "meta": {"n_params": 8_000, "size": 5_000, "n_ctx": 40_960}},
            "had size 16000, now 5000",
        ),
        (VLLM, {**VLLM, "max_model_len": 8_192}, "model.window was 40960, now 8192"),
    ],
)
def test_the_weights_that_the_server_names_are_compared(
    ask: Ask, then: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    with stopped_run(ask, then), serving(now) as server:
        done = ask("--model", "m", "--base-url", server.url, "--resume")
        if said:
            mistake(done, said)
        else:
            assert done.code == 0, done


def test_other_weights_at_the_same_address_are_found_too(ask: Ask) -> None:
    with serving() as server:
        assert ask("--model", "m", "--base-url", server.url, "--set", "run.tokens=1").code == 1
        server.pages["/v1/models"] = {"data": [{**VLLM, "root": "/models/Llama"}]}
        mistake(ask("--model", "m", "--base-url", server.url, "--resume"), "now /models/Llama")


def test_from_a_public_api_to_a_server_without_a_key(ask: Ask, tmp_path: Path) -> None:
    """The key's variable goes with the address; a run's other settings don't."""
    with serving(None) as public, serving(None) as own:
        keyed = ("--set", "model.key_variable=PUBLIC_KEY", "--set", "model.window=40_960", "--model", "m")
        assert ask(*keyed, "--base-url", public.url, "--set", "run.tokens=1", PUBLIC_KEY="secret-1").code == 1
        assert public.requests[0].headers["authorization"] == "Bearer secret-1"
        without = ("--set", "model.key_variable=none", "--set", "model.window=40_960", "--model", "m")
        assert ask(*without, "--base-url", own.url, "--resume", PUBLIC_KEY="secret-1").code == 0
        assert "authorization" not in own.requests[0].headers
    known = [(each["endpoint"], each["key_variable"]) for each in manifest(tmp_path)["servers"]]
    assert known == [(public.url, "PUBLIC_KEY"), (own.url, None)]
    assert "secret-1" not in (tmp_path / "run" / "manifest.json").read_text()


def test_an_address_that_rejects_the_key_is_recorded_and_left_again(ask: Ask, tmp_path: Path) -> None:
    with stopped_run(ask) as first, ScriptedServer(lambda _: refuse(401), models=[VLLM]) as broken, serving() as good:
        flags = ("--model", "m", "--resume", "--base-url")
        assert ask(*flags, broken.url).code not in (0, 1)
        failed = len(read_ledger(tmp_path / "run"))
        assert failed > 1
        assert ask(*flags, good.url).code == 0
        where = where_asked(manifest(tmp_path))
        assert where.startswith(f"attempt 1 at {first}, attempt")
        assert where.endswith(f" at {broken.url}, from attempt {failed + 1} on at {good.url}")


def test_runs_that_moved_and_one_begun_after_the_move_are_one_system(graph: Path, tmp_path: Path) -> None:
    other = another_export(tmp_path / "other", "second", [Asked("q1", (1,), split="test")]).path
    base = ["run", "--mode", "closed-book-ids", "--split", "test", "--workers", "1", "--model", "m"]
    with serving() as old, serving() as new:
        first = [*base, "--graph", str(graph), "--out", str(tmp_path / "all" / "one")]
        assert run_cli(*first, "--base-url", old.url, "--set", "run.tokens=1").code == 1
        assert run_cli(*first, "--base-url", new.url, "--resume").code == 0
        second = [*base, "--graph", str(other), "--out", str(tmp_path / "all" / "two")]
        assert run_cli(*second, "--base-url", new.url).code == 0
    table = orjson.loads(run_cli("report", str(tmp_path / "all"), "--format", "json").stdout)
    assert len(table["systems"]) == 1
