"""The pages hold together: links resolve, code can be read, names exist, and nothing speaks of one machine."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from urllib.parse import urlsplit

import orjson
import pytest

from agui_bridge import __version__
from agui_bridge.bridge import Bridge
from agui_bridge.cli import main
from agui_bridge.settings import Settings
from bench.streams import row_values
from runtime.agent import Agent
from runtime.scripted import ScriptedModel
from scripts.generate_map import modules
from scripts.generate_models import models
from tests.docs.pages import NAMES, ROOT, Block, anchors, blocks, links, prose, text_of
from tests.routes import routes

HOSTS = {"127.0.0.1", "app.example", "docs.ag-ui.com", "files.example", "semver.org"}
"""The hosts that a page may name."""

PATHS = {
    "agents",
    "capabilities",
    "connect",
    "copilotkit",
    "api",
    "health",
    "ready",
    "openapi",
    "inspector",
    "tokens",
    "fail",
    "script",
}
"""The first members of the absolute paths that a page may name: our routes, and the scripted model's commands."""


@pytest.mark.parametrize("name", NAMES)
def test_links_between_pages_resolve(name: str) -> None:
    for target in links(name):
        if urlsplit(target).scheme:
            continue
        path, _, fragment = target.partition("#")
        page = (ROOT / name).parent / path if path else ROOT / name
        assert page.exists(), f"{name} links to {target}"
        if fragment:
            assert fragment in anchors(page.resolve().relative_to(ROOT).as_posix()), f"{name} links to {target}"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_host_but_ours_and_the_protocols(name: str) -> None:
    found = {urlsplit(url).hostname for url in re.findall(r"\bhttps?://[^\s)\"'`<>]+", text_of(name))}
    assert found <= HOSTS


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_path_of_a_machine(name: str) -> None:
    found = set(re.findall(r"(?<![\w./:}<>*\])-])/([A-Za-z][\w-]*)", text_of(name)))
    assert found <= PATHS


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.name)
def test_python_in_a_page_compiles(block: Block) -> None:
    ast.parse(block.text)


@pytest.mark.parametrize("block", blocks("sh"), ids=lambda block: block.name)
def test_shell_in_a_page_calls_what_there_is(block: Block) -> None:
    for line in re.sub(r"\\\n", "", block.text).splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert f"\n{words[1]}:" in text_of("Makefile"), line
        if "agui-bridge" in words and words[-1] != "agui-bridge":
            assert words[words.index("agui-bridge", words.index("agui-bridge") + 1) + 1] in main.commands, line
        for data in words[words.index("-d") + 1 :] if "-d" in words else ():
            orjson.loads(data)


def test_the_routes_in_the_page_are_those_of_the_app() -> None:
    bridge = Bridge(Agent("a", model=ScriptedModel()), settings=Settings.model_validate({"store": "memory:"}))
    served = {f"{method} {path}" for path, methods in routes(bridge.app).items() for method in methods}
    told = re.findall(r"^\| `((?:GET|POST|PATCH|DELETE) [^`]+)` \|", text_of("docs/http.md"), re.MULTILINE)
    assert set(told) == served


def test_the_changelog_speaks_of_this_version() -> None:
    latest = text_of("CHANGELOG.md").split("\n## ")[1]
    assert __version__ in latest


def test_modules_and_tests_that_pages_name_exist() -> None:
    known = {path for package in ("runtime", "agui_bridge", "agui_check") for path in modules(package)}
    for name in NAMES:
        for path in re.findall(r"`((?:runtime|agui_bridge|tests|scripts|bench)/[\w./]+\.py)`", text_of(name)):
            assert path in known or (ROOT / path).is_file(), f"{name} names {path}"


def test_the_readme_names_a_test_for_each_guarantee_and_these_tests_exist() -> None:
    section = text_of("README.md").split("## What it guarantees")[1].split("\n## ")[0]
    bullets = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    proofs = [re.findall(r"`(test_\w+)`", bullet) for bullet in bullets]
    assert [len(names) for names in proofs] == [1] * 5
    tree = ast.parse(text_of("tests/docs/test_guarantees.py"))
    assert {names[0] for names in proofs} == {
        node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_the_readme_maps_every_folder_with_code() -> None:
    told = set(re.findall(r"^\| `(\w+)/` \|", text_of("README.md"), re.MULTILINE))
    with_code = {path.parent.name for path in ROOT.glob("*/*.py") if not path.parent.name.startswith(".")}
    assert with_code <= told
    assert all((ROOT / name).is_dir() for name in told)


def test_the_models_that_the_readme_names_are_known() -> None:
    kinds = {name.partition(":")[0] for name in models()}
    named = re.findall(r'model="([\w-]+)', text_of("README.md"))
    assert named
    assert set(named) <= kinds


def test_the_page_on_performance_explains_every_row_that_the_bench_prints() -> None:
    rows = re.findall(r'^ +"([^"]+)": f"', inspect.getsource(row_values), re.MULTILINE)
    assert len(rows) >= 5
    page = text_of("docs/performance.md")
    assert "<!-- figures -->" in page
    assert [row for row in rows if row not in page] == []


def test_no_page_is_left_without_a_way_to_it() -> None:
    reached = {(ROOT / target.partition("#")[0]).resolve() for target in links("README.md") if "://" not in target}
    assert {ROOT / name for name in NAMES if name != "README.md"} <= reached


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_one_title_and_no_tab(name: str) -> None:
    assert len(re.findall(r"^# ", prose(name), re.MULTILINE)) == 1
    assert "\t" not in text_of(name)
