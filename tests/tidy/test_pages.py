"""Pages: every block says its language, links lead to files, the README works on PyPI, the site has each page."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tomllib

import hoodie
from hoodie.ingest.sources import registry
from tests.support.pages import ROOT, Page, pages
from tests.tidy.sources import for_each, package_sources

# Blocks of python and shell run in tests/contract/test_pages.py; text is what cannot run.
LANGUAGES = {"python", "shell", "text", "mermaid"}

each_page = for_each(pages())


@each_page
def test_every_block_says_its_language(page: Page) -> None:
    assert page.languages() <= LANGUAGES, f"{page.name}: mark a block that cannot run as text"
    indented = re.search(r"^(?![ ]*(?:[-*]|\d+\.) ).*\n\n    (?! *(?:[-*]|\d+\.) ).*", page.prose(), re.MULTILINE)
    assert indented is None, f"{page.name}: an indented block has no language: {indented[0]!r}"


@each_page
def test_links_lead_to_files(page: Page) -> None:
    folder = (ROOT / page.name).parent
    missing = [target for target in page.relative_links() if target and not (folder / target).exists()]
    assert not missing, f"{page.name} links to files that do not exist: {missing}"


def test_a_package_index_shows_the_readme_without_relative_links() -> None:
    """It shows the README alone: a link to another page of the project would lead nowhere."""
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    readme = next(page for page in pages() if page.name == "README.md")
    shown = readme.text
    for rule in hook["fancy-pypi-readme"]["substitutions"]:
        shown = re.sub(rule["pattern"], rule["replacement"], shown)
    assert not list(Page("README.md", shown).relative_links())
    assert all(f"(`{target}" in shown for target in readme.relative_links())


def test_the_package_has_the_version_of_the_newest_changes() -> None:
    """A release that is not published yet is `….dev0` in the package, and `(unreleased)` in the changelog."""
    heading = re.search(r"^## (\S+)(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    number, note = heading.groups()
    assert hoodie.__version__ == (f"{number}.dev0" if note == " (unreleased)" else number)


def test_the_site_has_every_page() -> None:
    named = re.findall(r"([\w/-]+\.md)\b", (ROOT / "mkdocs.yml").read_text())
    missing = {page.name.removeprefix("docs/") for page in pages() if page.name.startswith("docs/")} - {*named}
    assert not missing, "add these pages to `nav` in mkdocs.yml"


def test_the_guide_to_the_tests_names_files_that_exist() -> None:
    guide = (ROOT / "tests" / "README.md").read_text()
    folders = [made.name for made in (ROOT / "tests").iterdir() if made.is_dir() and any(made.rglob("*.py"))]
    named = re.findall(rf"`((?:{'|'.join(folders)})/[\w./-]*)`", guide)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
    assert [name for name in folders if f"| `{name}/` |" not in guide] == []


def test_the_guide_to_the_tests_names_markers_and_variables() -> None:
    guide = (ROOT / "tests" / "README.md").read_text()
    markers = re.findall(r'^    "(\w+)(?:\([^"]*\))?: ', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    read = {
        name
        for file in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"\"(HOODIE_[A-Z_0-9]+)\"", file.read_text())
    }
    assert len(markers) > 5
    assert len(read) > 5
    assert [name for name in (*markers, *sorted(read)) if f"`{name}`" not in guide and f"`{name}=" not in guide] == []


def test_methods_of_a_table_say_what_they_raise_and_have_an_example() -> None:
    """Examples that need Spark are text: the pages run such code."""
    methods = {name: getattr(hoodie.Table, name) for name in dir(hoodie.Table) if not name.startswith("_")}
    docs = {name: inspect.getdoc(method) or "" for name, method in methods.items() if inspect.isfunction(method)}
    assert len(docs) > 40
    assert [name for name, doc in docs.items() if "Raises:" not in doc] == []
    assert [name for name, doc in docs.items() if ">>> " not in doc and "For example `" not in doc] == []


@each_page
def test_measured_figures_have_a_day_and_a_commit(page: Page) -> None:
    sections = re.findall(r"<!-- bench:([\w-]+):begin -->\n(.*?)<!-- bench:\1:end -->", page.text, re.DOTALL)
    bare = [name for name, text in sections if text and not re.search(r"20\d\d-\d\d-\d\d, commit [0-9a-f]{8}", text)]
    assert not bare, f"{page.name}: `make bench` writes both: {bare}"


def test_messages_of_the_page_on_troubleshooting_are_those_of_the_code() -> None:
    """`…` stands for what the code puts in."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    texts = "\0".join(
        node.value
        for source in package_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    parts = [part.strip(" ;,:") for message in messages for part in message.split("…")]
    assert len(messages) > 60
    assert [part for part in parts if part not in texts] == []


def test_the_pages_of_sources_have_their_keys() -> None:
    """The docstring of a source names the page with its keys."""
    found = 0
    for kind in registry.KINDS:
        source = registry.class_of(kind)
        for name in re.findall(r"(docs/ingest/\w+\.md): the keys", source.__doc__ or ""):
            page = (ROOT / name).read_text()
            keys = [one.name for one in dataclasses.fields(source) if one.init]
            assert [key for key in keys if f"`{key}`" not in page] == [], f"{name} lacks keys of {kind}"
            found += 1
    assert found > 4


# A script writes options.md, one row for each option. CHANGELOG.md has one line for each change, as it was released.
WIDE = ("docs/options.md", "CHANGELOG.md")
# The conflict matrix has a column for each operation; test_conflict_matrix.py compares it with the code.
MATRIX_HEAD = "| ↓ runs, → completes |"
LINE_CHARACTERS = 250


@each_page
def test_lists_are_lists_on_the_site(page: Page) -> None:
    """There a list needs an empty line before it, and a list in a list four spaces."""
    item = r"(?:[-*]|\d+\.) "
    wrong = re.findall(rf"^ {{1,3}}{item}.*|^(?![ #]|{item}).+\n{item}.*", page.prose(), re.MULTILINE)
    assert not wrong, f"{page.name}: {wrong[:3]}"


@each_page
def test_lines_are_short(page: Page) -> None:
    if page.name not in WIDE:
        lines = enumerate((ROOT / page.name).read_text().splitlines(), start=1)
        long = [
            f"{page.name}:{number}"
            for number, text in lines
            if len(text) > LINE_CHARACTERS and not text.startswith(MATRIX_HEAD)
        ]
        assert not long, f"lines of more than {LINE_CHARACTERS} characters: {long}"
