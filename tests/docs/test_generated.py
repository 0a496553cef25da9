"""What `make docs` writes is what is committed, and the words in the generators fit the code."""

from __future__ import annotations

import re

import pytest

from agui_bridge.projection import _HANDLERS
from agui_bridge.settings import Settings
from runtime.events import EVENT_TYPES
from runtime.run import TERMINAL, TRANSITIONS
from scripts import generate_docs, generate_events, generate_http, generate_map, generate_settings, generate_states
from scripts.generate_markdown import block_of, replace_block, table
from tests.docs.pages import text_of

# A run's own stream opens with these where the page lacks something; the prelude makes them, not a handler.
PRELUDE = {"MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"}


@pytest.mark.parametrize("name", generate_docs.PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    now = generate_docs.text_of(name)
    assert generate_docs.PAGES[name](now) == now, f"{name} is not what the code says; run `make docs`"


def test_checking_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: generate_docs.text_of(name) for name in generate_docs.PAGES}
    generate_docs.main(["--check"])
    capsys.readouterr()
    assert {name: generate_docs.text_of(name) for name in generate_docs.PAGES} == before


# --- events -------------------------------------------------------------------------------------------------------


def test_every_event_has_its_words() -> None:
    for words in (generate_events.WRITERS, generate_events.SHOWN, generate_events.SINCE):
        assert words.keys() == EVENT_TYPES.keys()


def test_the_writers_of_an_event_are_those_that_the_code_has() -> None:
    said = {event: set(modules) for event, modules in generate_events.WRITERS.items()}
    assert said == generate_events.writers()


@pytest.mark.parametrize("event", EVENT_TYPES)
def test_the_words_of_an_event_name_only_what_the_projection_makes_of_it(event: str) -> None:
    made = set(generate_events.projected(EVENT_TYPES[event]))
    named = set(re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", generate_events.SHOWN[event]))
    assert named <= made | (PRELUDE if event == "run.started" else set[str]())
    assert bool(made) != generate_events.SHOWN[event].startswith("Nothing"), "shown, or not"


def test_what_can_become_of_an_event_is_read_from_the_projection() -> None:
    become = {name: generate_events.projected(cls) for name, cls in EVENT_TYPES.items()}
    assert become["tool.call.committed"] == ["TOOL_CALL_END"]
    assert become["state.delta"] == ["STATE_DELTA", "STATE_SNAPSHOT"]
    assert become["tool.execution.started"] == []
    assert become["run.failed"] == [
        generate_events.CLOSING,
        "STATE_SNAPSHOT",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
        "RUN_ERROR",
    ]
    assert {cls for cls, types in become.items() if types} <= {cls.event_type for cls in _HANDLERS}


# --- run states ---------------------------------------------------------------------------------------------------


def test_every_state_has_its_meaning() -> None:
    assert generate_states.MEANINGS.keys() == TRANSITIONS.keys()


def test_the_diagram_has_every_move_of_the_table_and_no_other() -> None:
    page = text_of("docs/run-states.md")
    drawn = set(re.findall(r"^    (\w+) --> (\w+): ([\w.]+)$", page, re.MULTILINE))
    assert drawn == {(before, after, event) for before, event, after in generate_states.moves()}
    assert set(re.findall(r"^    (\w+) --> \[\*\]$", page, re.MULTILINE)) == TERMINAL


# --- settings -----------------------------------------------------------------------------------------------------


def test_every_setting_stands_in_the_page_with_its_variable_and_its_meaning() -> None:
    page = text_of("docs/settings.md")
    for name, field in Settings.model_fields.items():
        assert f"`{name}`" in page
        assert f"`{generate_settings.variable(name)}`" in page
        assert field.description
        assert field.description in page


def test_a_variable_in_the_page_is_one_that_the_settings_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(generate_settings.variable("max_rounds"), "7")
    assert Settings.model_validate({}).max_rounds == 7


# --- HTTP ---------------------------------------------------------------------------------------------------------


def test_every_error_code_of_the_code_base_has_its_words_and_no_words_are_left_over() -> None:
    framework = {"method_not_allowed", "http_error"}
    projected = {"run_interrupted"}
    told = {*generate_http.REFUSALS, *generate_http.RUN_ERRORS, *generate_http.ELSEWHERE}
    assert told == generate_http.codes() | framework | projected


# --- the map ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", generate_map.PACKAGES)
def test_every_module_is_in_the_map_and_says_what_it_is(package: str) -> None:
    block = block_of(text_of("docs/architecture.md"), f"modules of {package}")
    for path, words in generate_map.modules(package).items():
        assert words, f"{path} has no docstring"
        assert f"| `{path.removeprefix(f'{package}/')}` |" in block


# --- the tools ----------------------------------------------------------------------------------------------------


def test_a_block_is_replaced_between_its_marks_and_nothing_else() -> None:
    page = "before\n<!-- generated: x -->\nold\n<!-- end: x -->\nafter\n"
    new = replace_block(page, "x", r"new \1")
    assert new == "before\n<!-- generated: x -->\nnew \\1\n<!-- end: x -->\nafter\n"
    assert block_of(new, "x") == r"new \1"
    with pytest.raises(ValueError, match="no block 'y'"):
        replace_block(page, "y", "new")


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert table(("a", "b"), [("1 | 2", "two\nlines")]) == "| a | b |\n|---|---|\n| 1 \\| 2 | two lines |"
