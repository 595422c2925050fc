"""Rooms import only rooms above them; only spark/ knows PySpark; only storage/ touches files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.tidy.sources import PUBLIC, ROOT, Source, for_each, package_sources

# Highest first. A room imports rooms of earlier lines only; docs/architecture.md shows the same picture.
LINES = (
    ("errors", "config", "progress", "display"),
    ("format", "results"),
    ("arguments", "storage"),
    ("engine",),
    ("records",),
    ("timeline",),
    ("files",),
    ("metadata",),
    ("view",),
    ("index",),
    ("commit",),
    ("read", "services"),
    ("write",),
    ("merge_into",),
    ("table",),
    ("statements",),
    ("ingest",),
    ("spark",),
    (PUBLIC,),
    ("web",),
    ("cli",),
)
LINE_OF = {room: number for number, line in enumerate(LINES) for room in line}
ROOMS = LINE_OF.keys() | {source.room for source in package_sources()}

# Edges the order forbids and we allow, each with its reason.
EXTRA_EDGES = {
    ("config", "errors"): "a wrong option raises an error",
    (PUBLIC, "cli"): "`python -m hoodie` runs the command line; `import hoodie` must not, see the last test",
}

# The terminal and its files belong to these rooms; every other room asks storage/.
ROOMS_WITH_FILES = {"storage", "cli"}
FILE_MODULES = {"fsspec", "glob", "io.open", "mmap", "obstore", "pathlib.Path", "pyarrow.fs", "shutil", "tempfile"}
FILE_CALLS_OF_PYARROW = {"OSFile", "memory_map", "create_memory_map"}
OS_NAMES_WITHOUT_FILES = {
    "cpu_count",
    "environ",
    "fspath",
    "getenv",
    "getpid",
    "getppid",
    "kill",
    "process_cpu_count",
    "sched_getaffinity",
    "urandom",
}

# Modules that may break the rule on files, each with its reason.
FILE_EXCEPTIONS: dict[str, str] = {"src/hoodie/spark/workers.py": "looks for the interpreter of the workers on PATH"}

each_source = for_each(package_sources())


def _rooms_imported(source: Source) -> Iterator[tuple[int, str]]:
    for line, name in source.imports():
        top, _, rest = name.partition(".")
        if top == "hoodie":
            room = rest.partition(".")[0]
            yield line, room if room in ROOMS else PUBLIC


def test_the_order_names_every_room() -> None:
    missing = ROOMS - LINE_OF.keys()
    assert not missing, f"give {missing} a place in LINES and in docs/architecture.md"


def test_the_architecture_page_shows_the_same_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| (.+?) \| .+ \|$", page, flags=re.MULTILINE)
    shown = [tuple(name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`(.+?)`", row)) for row in rows]
    assert [tuple(room.removesuffix("/__init__") for room in line) for line in shown] == list(LINES)


@each_source
def test_a_package_says_its_job(source: Source) -> None:
    if source.path.name == "__init__.py":
        assert len(ast.get_docstring(source.tree) or "") > 20, f"{source.name}: a package says its job in two sentences"


@each_source
def test_a_room_imports_only_rooms_above_it(source: Source) -> None:
    own_line = LINE_OF.get(source.room, len(LINES))
    wrong = [
        f"{source.name}:{line} imports {room}"
        for line, room in _rooms_imported(source)
        if room != source.room and LINE_OF.get(room, len(LINES)) >= own_line and (source.room, room) not in EXTRA_EDGES
    ]
    assert not wrong, f"{source.room} may only import rooms above it: {wrong}"


@each_source
def test_only_spark_imports_pyspark(source: Source) -> None:
    only_types = _lines_for_type_checkers(source)
    wrong = [
        line
        for line, name in source.imports()
        if name.partition(".")[0] in {"pyspark", "py4j"} and line not in only_types
    ]
    assert source.room == "spark" or not wrong, f"{source.name} imports pyspark on lines {wrong}"


def _lines_for_type_checkers(source: Source) -> set[int]:
    """Return the lines that no program runs: the bodies of `if TYPE_CHECKING:`."""
    return {
        inner.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
        if isinstance(inner, ast.stmt)
    }


@each_source
def test_only_storage_touches_files(source: Source) -> None:
    wrong = sorted(_file_accesses(source))
    if source.name in FILE_EXCEPTIONS:
        assert wrong, f"{source.name} no longer needs its exception"
        return
    if source.room not in ROOMS_WITH_FILES:
        assert not wrong, f"only storage/ touches files: {[f'{source.name}:{line} {what}' for line, what in wrong]}"


def _file_accesses(source: Source) -> Iterator[tuple[int, str]]:
    for line, name in source.imports():
        parents = {".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 2)}
        if parents & FILE_MODULES or (name.startswith("os.") and name[3:] not in OS_NAMES_WITHOUT_FILES):
            yield line, f"imports {name}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "calls open()"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if owner == "os" and name not in OS_NAMES_WITHOUT_FILES and name != "PathLike":
                yield node.lineno, f"uses os.{name}"
            if (owner, name) in {("pathlib", "Path"), ("io", "open")}:
                yield node.lineno, f"uses {owner}.{name}"
            if owner == "pa" and name in FILE_CALLS_OF_PYARROW:
                yield node.lineno, f"uses pa.{name}"


def test_importing_hoodie_is_light() -> None:
    heavy = {"fastavro", "isal", "numpy", "obstore", "pandas", "pyarrow", "pyspark", "rich", "sqlglot", "typer"}
    assert _loaded("import hoodie") & heavy == set(), "`import hoodie` must stay light"


def test_the_module_that_every_spark_looks_into_is_light() -> None:
    assert "hoodie" not in _loaded("import pyspark_hoodie; pyspark_hoodie.DefaultSource")


def test_a_read_without_a_condition_loads_no_parser() -> None:
    table = "import hoodie, pyarrow as pa; t = hoodie.create('memory://t', pa.schema([('id', pa.string())]))"
    assert "sqlglot" not in _loaded(f"{table}; t.head()")


def test_the_command_line_loads_its_command_only() -> None:
    loaded = _loaded("from hoodie.cli import main", "main(['head', 'memory://none'])")
    assert "hoodie.cli.reads" in loaded
    assert loaded & {"hoodie.cli.writes", "hoodie.cli.demo", "pandas", "pyspark", "sqlglot"} == set()


_OF_ALL_COMMANDS = {"hoodie.cli.app", "hoodie.cli.terminal", "hoodie.cli.words"}


def test_the_version_loads_no_command() -> None:
    loaded = _loaded("from hoodie.cli import main", "main(['--version'])")
    assert not {name for name in loaded if name.startswith("hoodie.cli.")} - _OF_ALL_COMMANDS


def _loaded(*lines: str) -> set[str]:
    """Return the names of the modules that a new process has loaded after these lines, which may exit."""
    code = "\n".join(["import atexit, sys", "atexit.register(lambda: print('LOADED', *sys.modules))", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "LOADED" in done.stdout, done.stderr
    return set(done.stdout.partition("LOADED")[2].split())
