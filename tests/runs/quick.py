"""``make quick``: lint and types of what changed, and the tests that the change can reach, nearest first, as many as the time allows.

A test file is reached through the imports of its own, of the helpers it imports, and of hilsim's modules (grimp's graph, that of the layers' contract).
Its distance is the number of imports between it and the change. What there was no time for is listed.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[2]
UNTIL_NS = "HILSIM_TESTS_UNTIL_NS"
"""Environment variable with the CLOCK_MONOTONIC time after which ``tests.conftest`` lets no test begin."""

NO_TIME = "no time was left for it"
DURATIONS = Path(".pytest_cache/hilsim-seconds.json")
"""Seconds that each file of tests took last; each run of ``make quick`` adds to it."""

_UNKNOWN_S = 6.0
_START_S = 8.0
_END_S = 10.0
"""What has begun is not broken off: no test begins so long before the end."""
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
    import grimp  # noqa: PLC0415 - not needed by tests/conftest.py, which imports this module

    graph = grimp.build_graph("hilsim", exclude_type_checking_imports=True)
    found = {name: set(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    tests = {module_of(path.relative_to(root)): path for folder in ("tests", "tools") for path in (root / folder).rglob("*.py")}
    for name, path in tests.items():
        for imported in imported_by_file(path):
            if imported in tests or imported in found:
                found.setdefault(imported, set()).add(name)
    found.get("hilsim", set()).clear()  # the lazy front door imports nothing by itself
    return found


def below(path, root=ROOT):
    """Names of the test modules that a changed ``conftest.py`` reaches."""
    return [module_of(test.relative_to(root)) for test in (root / path).parent.rglob("test_*.py")] if path.endswith("conftest.py") else []


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
    modules = [module_of(path) for path in paths if path.endswith(".py") and path.startswith(("hilsim/", "tests/", "tools/"))]
    unmapped = [path for path in paths if not path.endswith((".py", ".md")) or path.startswith(("bench/", "examples/"))]
    reached = distances([*modules, *(name for path in paths if path.startswith("tests/") for name in below(path))], reached_by)
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


def _run(taken, budget_s):
    report = ROOT / ".pytest_cache" / "hilsim-quick.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    environment = os.environ | {UNTIL_NS: str(time.monotonic_ns() + round(budget_s * 1e9))}
    code = subprocess.run([*_PYTEST, f"--junit-xml={report}", *taken], cwd=ROOT, env=environment, check=False).returncode
    return (code, *read_report(report)) if report.is_file() else (code, {}, [])


def read_report(report):
    """Seconds of each file of tests in pytest's JUnit report, and the files for which the time ended."""
    seconds, unfinished = {}, set()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own report
        path = f"{case.get('classname', '').replace('.', '/')}.py"
        seconds[path] = seconds.get(path, 0.0) + float(case.get("time", "0"))
        skipped = case.find("skipped")
        if skipped is not None and NO_TIME in skipped.get("message", ""):
            unfinished.add(path)
    return {path: took_s for path, took_s in seconds.items() if path not in unfinished}, sorted(unfinished)


def by_folder(paths):
    """``folder (number of files)`` of each folder, in the order of the paths."""
    counts = Counter(str(Path(path).parent) for path in paths)
    return ", ".join(f"{folder} ({count})" for folder, count in counts.items())


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
    code, left_out = 0, choice.left_out
    if choice.taken:
        code, took, unfinished = _run(choice.taken, 60.0 * arguments.minutes - _END_S - (time.monotonic() - began_s))
        left_out = [*unfinished, *left_out]
        stored.write_text(json.dumps(seconds | took, indent=0, sort_keys=True))
    sys.stdout.write(f"\n{time.monotonic() - began_s:.0f} s: lint and types {'FAILED' if failed else 'passed'} ({linted_s:.0f} s)")
    sys.stdout.write(f", tests of {by_folder(choice.taken) or 'nothing'}\n")
    if left_out:
        sys.stdout.write(f"the change can reach more, left out for time (make test runs it): {by_folder(left_out)}\n")
    if choice.unmapped:
        sys.stdout.write(f"no test is found by imports for: {' '.join(choice.unmapped)}\n")
    return 1 if failed or code not in (0, 5) else 0


if __name__ == "__main__":
    sys.exit(main())
