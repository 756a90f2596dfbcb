from __future__ import annotations

import json

import pytest

from harness.backbones.profiles import DEFAULT_MODEL, Profile, load_profile, profile_names, read_key
from harness.errors import UserError

KEY = "canary-key-4711"


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.touch()
    monkeypatch.setenv("HARNESS_CONFIG", str(path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return path


def test_built_in_profiles_all_load():
    assert set(profile_names()) == {"gpt-4.1", "gpt-4o", "gpt-5.2", "gpt-6-astra", "gpt-6-luna"}
    for name in profile_names():
        profile = load_profile(name)
        assert (profile.name, profile.model, profile.api) == (name, name, "chat")
    default = load_profile(DEFAULT_MODEL)
    assert (default.effort, default.prices.input) == ("high", None)


def test_unknown_model_names_what_there_is():
    with pytest.raises(UserError, match="unknown model 'gpt-9'") as error:
        load_profile("gpt-9")
    assert "gpt-4o, gpt-5.2" in error.value.hint


def test_any_model_id_with_a_base_url():
    profile = load_profile("org/some-model:7b", base_url="http://localhost:8000/v1")
    assert (profile.model, profile.endpoint, profile.needs_key) == (
        "org/some-model:7b",
        "http://localhost:8000/v1",
        False,
    )


def test_user_file_adds_profiles_and_is_laid_over_built_in_ones(config):
    config.write_text(
        'default_model = "mine"\n'
        '[models.mine]\nendpoint = "https://models.example/v1"\nkey_variable = "MINE_KEY"\nwindow = 32000\n'
        "[models.mine.extra_body]\nchat_template_kwargs = { enable_thinking = true }\n"
        '[models."gpt-4o"]\ntemperature = 0.2\nprices = { output = 9 }\n'
    )
    mine = load_profile("mine")
    assert (mine.model, mine.key_variable, mine.window) == ("mine", "MINE_KEY", 32000)
    assert mine.extra_body == {"chat_template_kwargs": {"enable_thinking": True}}
    changed = load_profile("gpt-4o")
    assert (changed.temperature, changed.prices.output, changed.prices.input) == (0.2, 9.0, 2.5)
    assert "mine" in profile_names()


@pytest.mark.parametrize(
    ("text", "says"),
    [("[models.x]\nwindwo = 1\n", "unknown key 'windwo'"), ("models = 1\n", "table of tables"), ("=", "config file")],
)
def test_mistakes_in_the_user_file(config, text, says):
    config.write_text(text)
    with pytest.raises(UserError, match=says):
        load_profile("x")


def test_overrides_come_last_and_unknown_ones_are_refused(config):
    config.write_text("[models.gpt-6-luna]\nseed = 1\n")
    profile = load_profile("gpt-6-luna", overrides={"seed": 7, "effort": "none", "prices": {"input": 1}})
    assert (profile.seed, profile.effort, profile.prices.input) == (7, None, 1.0)
    with pytest.raises(UserError, match="unknown key 'temprature'") as error:
        load_profile("gpt-6-luna", overrides={"temprature": 1})
    assert "temperature" in error.value.hint


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"endpoint": "ftp://x"}, "endpoint 'ftp://x' is not an http"),
        ({"endpoint": ""}, "endpoint '' is not an http"),
        ({"endpoint": "localhost:8000"}, "not an http"),
        ({"endpoint": "http://[::1/v1"}, "not an http"),
        ({"endpoint": "http://host:99999/v1"}, "not an http"),
        ({"endpoint": "http://ho st/v1"}, "not an http"),
        ({"endpoint": "http://user:secret@host:99999/v1"}, "endpoint is not an http"),
        ({"endpoint": "https://user:secret@host/v1"}, "user name or password"),
        ({"endpoint": "https://host/v1?api_key=secret"}, "query string"),
        ({"endpoint": "https://host/v1#secret"}, "query string"),
        ({"extra_body": {"messages": []}}, "can't hold messages"),
        ({"window": 0}, "window is 0; it must be at least 1,000"),
        ({"window": 10}, "at least 1,000"),
        ({"max_output": 0}, "max_output is 0; it must be at least 1"),
        ({"tries": 0}, "tries is 0; it must be at least 1"),
        ({"temperature": -1}, "temperature is -1.0; it must be at least 0 and at most 2"),
        ({"temperature": float("nan")}, "takes a number or none, not nan"),
        ({"top_p": 0}, "top_p is 0.0; it must be greater than 0 and at most 1"),
        ({"timeout": 0}, "timeout is 0.0; it must be greater than 0 and at most 2,000,000"),
        ({"connect_timeout": 1e9}, "at most 2,000,000"),
        ({"idle_timeout": float("inf")}, "takes a number, not inf"),
        ({"backoff": -1}, "backoff is -1.0; it must be at least 0"),
        ({"backoff_max": -1}, "at least 0"),
        ({"max_wait": 1e9}, "at most 2,000,000"),
        ({"tries": "many"}, "tries takes a whole number"),
        ({"extra_body": 3}, "takes a table"),
        ({"api": "soap"}, "api is 'soap'"),
    ],
)
def test_impossible_values_are_refused(overrides, says):
    with pytest.raises(UserError, match=says) as error:
        load_profile("gpt-4o", overrides=overrides)
    assert "secret" not in str(error.value) + error.value.hint
    assert error.value.hint, "it says what is possible"


def test_a_key_is_read_when_asked_and_kept_nowhere(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    profile = load_profile("gpt-4o")
    assert read_key(profile) == KEY
    assert profile.has_key
    assert KEY not in repr(profile) + json.dumps(profile.as_dict())


def test_a_missing_key_names_its_variable():
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set") as error:
        read_key(load_profile("gpt-4o"))
    assert "export OPENAI_API_KEY" in error.value.hint


@pytest.mark.parametrize("text", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_not_repeated(monkeypatch, text):
    monkeypatch.setenv("OPENAI_API_KEY", text)
    with pytest.raises(UserError, match="no key has") as error:
        read_key(load_profile("gpt-4o"))
    assert text not in f"{error.value} {error.value.hint}"


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://localhost/v1", False),
        ("http://localhost.example/v1", True),
        ("http://127.0.0.1.example/v1", True),
        ("https://api.example/v1", True),
    ],
)
def test_loopback_needs_no_key(url, needs):
    assert Profile("m", "m", endpoint=url).needs_key is needs
    assert Profile("m", "m", endpoint=url, key_variable=None).needs_key is False
