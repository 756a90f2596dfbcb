"""Bash commands taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.audit.shell import Simple, Substitution, parse


def texts(command: str) -> list[list[str]]:
    """The words of each simple command, where they are plain text."""
    return [["".join(part for part in word if isinstance(part, str)) for word in one.words] for one in parse(command)]


def heredoc(simple: Simple) -> str:
    (redirect,) = [redirect for redirect in simple.redirects if redirect.op.startswith("<<")]
    return "".join(part for part in redirect.word if isinstance(part, str))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo 'it'\"'\"'s' \"a \\\"b\\\" \\$c\" $'x\\ty' d\\ e", [["echo", "it's", 'a "b" $c', "x\ty", "d e"]]),
        ("a | b && c; d & e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("if [ -f x ]; then rg a; else (cat b); fi", [["rg", "a"], ["cat", "b"]]),
        ("while read l; do grep $l f; done < x", [["read", "l"], ["grep", "", "f"]]),
        ("f() { python3 -c 'a'; }; ! f", [["python3", "-c", "a"], ["f"]]),
        ("echo $(rg b) `cat c`", [["rg", "b"], ["cat", "c"], ["echo", "", ""]]),
        ("cat a \\\n  b # comment", [["cat", "a", "b"]]),
        ("export A=5", [["export"]]),
    ],
)
def test_words(command: str, words: list[list[str]]) -> None:
    assert texts(command) == words


def test_text_between_expansions_keeps_its_blanks() -> None:
    (echo,) = parse('echo "  $a  $b\n"')
    assert [part if isinstance(part, str) else part.source for part in echo.words[1]] == ["  ", "$a", "  ", "$b", "\n"]


def test_heredocs() -> None:
    quoted, plain, dashed = parse("cat <<'E'\n$x \\$\nE\ncat <<E\n\\$x\nE\ncat <<-E\n\t\ta\n\tE\n")
    assert (heredoc(quoted), heredoc(plain), heredoc(dashed)) == ("$x \\$\n", "$x\n", "a\n")


def test_what_follows_a_heredoc_on_its_line() -> None:
    cat, python, head, ls = parse("cat <<'E' | python3 - 5 | head -3 && ls > f\nx\nE\n")
    assert [one.words[0] for one in (cat, python, head, ls)] == [("cat",), ("python3",), ("head",), ("ls",)]
    assert python.upstream is cat
    assert head.upstream is python
    assert ls.upstream is None
    assert heredoc(cat) == "x\n"
    assert [redirect.op for redirect in ls.redirects] == [">"]


def test_pipes_and_redirects_belong_to_the_last_command() -> None:
    first, second = parse("a 2>/dev/null | b >> out 2>&1")
    assert second.upstream is first
    assert [(r.op, r.descriptor, r.word) for r in first.redirects] == [(">", "2", ("/dev/null",))]
    assert [(r.op, r.descriptor) for r in second.redirects] == [(">>", ""), (">&", "2")]


def test_substitutions_hold_their_commands() -> None:
    cat, python = parse("python3 -c \"$(cat <<'E'\nprint(1)\nE\n)\"")
    (part,) = [part for part in python.words[2] if isinstance(part, Substitution)]
    assert part.commands == (cat,)
    assert heredoc(cat) == "print(1)\n"


def test_the_values_of_a_loop() -> None:
    loop, _ = parse("for i in 1 '2 3'; do echo $i; done")
    assert (loop.loop, loop.values) == ("i", [("1",), ("2 3",)])


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab $`'\"\\(){}<>|&;=\n\t-E*[]!#é\0", max_size=80))
def test_no_text_breaks_it(command: str) -> None:
    assert all(isinstance(found, Simple) for found in parse(command))


@pytest.mark.parametrize("piece", ["$(", "(", "`", '"$(', "{ ", "if ", "<<E\n", "${a:-", "case x in ("])
def test_deep_nesting_is_cut_off(piece: str) -> None:
    assert len(parse(piece * 5_000)) <= 5_000
