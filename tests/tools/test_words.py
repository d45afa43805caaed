"""Retired words are found wherever a reader meets them, and the list has nothing that is not needed."""

from pathlib import Path

import pytest
from tools.words import Found, Retired, look, read_list, words_of

from tools import words

CREW = [Retired(("crew", "last words"), "caller", {"docs/*.md": "a ship"})]
CLASSES = ["Door"]


@pytest.mark.parametrize(
    "line",
    [
        "def crew_of(plan):",
        "class NativeCrew:",
        "# the crew",
        'raise Error("no crew")',
        "CREW = 3",
        "self._last_words()",
    ],
)
def test_a_word_is_found_in_names_comments_and_messages(line):
    assert [found.line for found in look("a.py", f"x = 1\n{line}\n", CREW, CLASSES)] == [2]


@pytest.mark.parametrize("line", ["screwed", "crewel = 1", "the last two words", "door = 1"])
def test_part_of_a_word_is_another_word(line):
    assert not list(look("a.py", line, CREW, CLASSES))


def test_a_class_may_not_have_a_retired_name():
    assert [found.word for found in look("a.py", "\n\nclass _Door(Base):\n", CREW, CLASSES)] == ["class Door"]
    assert not list(look("a.md", "class Door", CREW, CLASSES))


def test_words_are_allowed_by_file():
    assert next(look("docs/sea.md", "The crew.", CREW, CLASSES)) == Found(
        "docs/sea.md", 1, "crew", "caller", "docs/*.md"
    )


def test_names_are_taken_apart():
    assert words_of("HTTPServer x_of_JSON2 readFile") == " http server x of json read file "


@pytest.mark.parametrize(
    ("text", "allowed", "says"),
    [
        ("A crew.\n", "", "a.md:1: 'crew' is retired; say: caller"),
        ("Nothing.\n", '[retired.allowed]\n"a.md" = "why"\n', "nothing to allow any more: crew: a.md"),
    ],
)
def test_the_check_fails_with_a_sentence(tmp_path, monkeypatch, capsys, text, allowed, says):
    (tmp_path / "a.md").write_text(text)
    listed = tmp_path / "list.toml"
    listed.write_text(
        f'not_read = []\nclasses = ["Door"]\n[[retired]]\nwords = ["crew"]\ninstead = "caller"\n{allowed}'
    )
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "read_list", lambda: read_list(listed))
    monkeypatch.setattr(words, "sources", lambda root, not_read: ["a.md"])
    assert words.main([]) == 1
    assert says in capsys.readouterr().out


def test_the_list_names_words_once():
    retired, classes, _ = read_list()
    named = [word for one in retired for word in one.words]
    assert len(named) == len(set(named))
    assert classes == sorted(set(classes))
    assert all(word == words_of(word).strip() for word in named)
    assert Path(words.LIST).is_file()
