"""Named queries and numbered migrations are read strictly: what is wrong with them shows at once."""

from __future__ import annotations

import pytest

from runtime.errors import StoreVersionError
from runtime.journal.migrate import Migration, migrations, pending, require_current, statements
from runtime.journal.queries import load, parse

STEPS = [Migration(number, f"step_{number}", "") for number in (1, 2, 3)]


def test_queries_are_found_by_name():
    text = "-- what this is about\n\n-- name: one\nSELECT 1;\n\n-- name: two\n-- why\nSELECT\n  2;\n"
    assert parse(text) == {"one": "SELECT 1", "two": "-- why\nSELECT\n  2"}


@pytest.mark.parametrize("text", ["-- name: one\n", "-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n"])
def test_a_query_without_a_statement_or_with_a_taken_name_is_refused(text: str):
    with pytest.raises(ValueError, match="one"):
        parse(text)


def test_the_queries_of_sqlite_are_whole():
    assert {"append_event", "find_run", "events_of_run"} <= load("sqlite").keys()


def test_the_migrations_of_sqlite_are_numbered_from_one():
    assert [step.number for step in migrations("sqlite")][:1] == [1]


def test_what_a_store_still_needs_is_what_is_behind_its_version():
    assert pending(0, STEPS) == STEPS
    assert pending(2, STEPS) == STEPS[2:]
    assert pending(3, STEPS) == []
    with pytest.raises(StoreVersionError, match=r"version 4.*up to 3"):
        pending(4, STEPS)


def test_a_store_that_needs_steps_is_not_current():
    require_current(3, STEPS)
    with pytest.raises(StoreVersionError, match=r"version 1.*needs 3"):
        require_current(1, STEPS)


def test_a_script_is_cut_into_its_statements():
    script = "-- a; comment\nCREATE TABLE a (x);\n\nCREATE TABLE b (\n  y DEFAULT ';'\n);\n-- the end\n"
    assert list(statements(script)) == ["-- a; comment\nCREATE TABLE a (x);", "CREATE TABLE b (\n  y DEFAULT ';'\n);"]


def test_a_script_that_ends_within_a_statement_is_refused():
    with pytest.raises(ValueError, match="within a statement"):
        list(statements("CREATE TABLE a (x);\nCREATE TABLE b (y)\n"))
