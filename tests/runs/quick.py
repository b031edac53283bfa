"""``make quick``: lint and types of what changed, and the tests that the change can reach, nearest first, as many as the time allows.

A test file is reached through the imports of its own, of the helpers it imports, and of hilsim's modules (grimp's graph, that of the layers' contract).
Its distance is the number of imports between it and the change. What there was no time for is listed.
"""

import argparse
import ast
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
DURATIONS = Path(".pytest_cache/hilsim-seconds.json")
"""Seconds that each file of tests took last; each run of ``make quick`` adds to it."""

_UNKNOWN_S = 6.0
_START_S = 8.0
_PROCESSES = 2
_PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    f"--numprocesses={_PROCESSES}",
    "--dist=loadfile",
    "--no-loadscope-reorder",
)
_PAGES = ("tests/unit/test_docs.py", "tests/unit/test_docs_commands.py")


@dataclass(frozen=True)
class Choice:
    """Tests of a change.

    Attributes:
        taken: Files of tests, nearest first.
        left_out: Files that the change can reach as well, for which there is no time.
        unmapped: Changed files that no import leads to: the whole of ``make test`` judges them.
    """

    taken: list[str]
    left_out: list[str]
    unmapped: list[str]


def changed_files(base):
    """Paths (from the root) that differ from ``base`` or are new."""
    differing = subprocess.run(["git", "diff", "--name-only", base], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    new = subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({*differing.split(), *new.split()})


def module_of(path):
    """The name that a Python file is imported by."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by_file(path):
    """Dotted names that a file imports anywhere in it; ``from a import b`` gives ``a`` and ``a.b``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
    return names


def importers(root=ROOT):
    """Of each module of hilsim and of the tests, those that import it."""
    graph = grimp.build_graph("hilsim", exclude_type_checking_imports=True)
    found = {name: set(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    tests = {module_of(path.relative_to(root)): path for path in (root / "tests").rglob("*.py")}
    for name, path in tests.items():
        for imported in imported_by_file(path):
            if imported in tests or imported in found:
                found.setdefault(imported, set()).add(name)
        for folder in path.relative_to(root).parents:  # fixtures reach each test below their folder
            if (root / folder / "conftest.py").is_file() and path.name.startswith("test_"):
                found.setdefault(module_of(folder / "conftest.py"), set()).add(name)
    found.get("hilsim", set()).clear()  # the lazy front door imports nothing by itself
    return found


def distances(changed, reached_by):
    """Of each module that a change reaches, the number of imports between them.

    Args:
        changed: Names of modules.
        reached_by: Of each module, those that import it.
    """
    found = dict.fromkeys(changed, 0)
    front = list(changed)
    while front:
        front = [each for name in front for each in sorted(reached_by.get(name, ())) if found.setdefault(each, found[name] + 1) == found[name] + 1]
        front = list(dict.fromkeys(each for each in front if each not in changed))
    return found


def choose(paths, *, budget_s, seconds, reached_by):
    """The tests of a change.

    Args:
        paths: Changed files.
        budget_s: Wall time for the tests.
        seconds: That each file of tests took, where known.
        reached_by: Of each module, those that import it.
    """
    modules = [module_of(path) for path in paths if path.endswith(".py") and path.startswith(("hilsim/", "tests/"))]
    unmapped = [path for path in paths if not path.endswith((".py", ".md")) or path.startswith(("bench/", "examples/"))]
    reached = distances(modules, reached_by)
    files = [
        (hops, f"{name.replace('.', '/')}.py")
        for name, hops in reached.items()
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]
    if any(path.endswith(".md") for path in paths):
        files += [(0, page) for page in _PAGES]
    near_packages = {path.split("/")[1] for path in paths if path.startswith("hilsim/")}
    files = [path for _, _, path in sorted((hops, path.split("/")[2] not in near_packages, path) for hops, path in dict.fromkeys(files))]
    taken, left_out, spent_s = [], [], _START_S
    for path in dict.fromkeys(files):
        cost_s = seconds.get(path, _UNKNOWN_S) / _PROCESSES
        fits = spent_s + cost_s <= budget_s
        (taken if fits else left_out).append(path)
        spent_s += cost_s if fits else 0.0
    return Choice(taken, left_out, unmapped)


def _lint(paths):
    bin_folder = Path(sys.executable).parent
    sources = [path for path in paths if path.endswith(".py") and (ROOT / path).is_file()]
    commands = [[bin_folder / "mypy"], [bin_folder / "lint-imports"]]
    if sources:
        commands = [[bin_folder / "ruff", "check", *sources], [bin_folder / "ruff", "format", "--check", *sources], *commands]
    present = [path for path in paths if (ROOT / path).is_file()]
    if present:
        commands.append([bin_folder / "codespell", *present])
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]
    failed = 0
    for process in running:
        output, _ = process.communicate()
        if process.returncode != 0:
            failed += 1
            sys.stdout.write(output)
    return failed


def _run(taken):
    report = ROOT / ".pytest_cache" / "hilsim-quick.xml"
    report.parent.mkdir(exist_ok=True)
    code = subprocess.run([*_PYTEST, f"--junit-xml={report}", *taken], cwd=ROOT, check=False).returncode
    return code, seconds_by_file(report) if report.is_file() else {}


def seconds_by_file(report):
    """Seconds of each file of tests in pytest's JUnit report."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - pytest's own report

    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - as above
        path = f"{case.get('classname', '').replace('.', '/')}.py"
        found[path] = found.get(path, 0.0) + float(case.get("time", "0"))
    return found


def main():
    """Run what a change asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="make quick")
    parser.add_argument("--base", default="HEAD")
    parser.add_argument("--minutes", type=float, default=3.0)
    arguments = parser.parse_args()
    began_s = time.monotonic()
    paths = changed_files(arguments.base)
    if not paths:
        sys.stdout.write(f"nothing differs from {arguments.base}; BASE=main compares with a branch\n")
        return 0
    failed = _lint(paths)
    stored = ROOT / DURATIONS
    seconds = json.loads(stored.read_text()) if stored.is_file() else {}
    linted_s = time.monotonic() - began_s
    choice = choose(paths, budget_s=60.0 * arguments.minutes - linted_s, seconds=seconds, reached_by=importers())
    code = 0
    if choice.taken:
        code, took = _run(choice.taken)
        stored.write_text(json.dumps(seconds | took, indent=0, sort_keys=True))
    took_s = time.monotonic() - began_s
    sys.stdout.write(f"\n{took_s:.0f} s: lint and types {'FAILED' if failed else 'passed'} ({linted_s:.0f} s); {len(choice.taken)} files of tests")
    sys.stdout.write(f", {len(choice.left_out)} more that the change can reach were left out for time\n")
    for title, names in (("left out", choice.left_out), ("judged by no test here", choice.unmapped)):
        if names:
            sys.stdout.write(f"{title}: {' '.join(names)}\n")
    return 1 if failed or code not in (0, 5) else 0


if __name__ == "__main__":
    sys.exit(main())
