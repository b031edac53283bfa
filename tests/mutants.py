"""``python -m tests.mutants``: eighty small faults, one at a time, and which tests find them.

Each mutant changes one operator, comparison or number of a function, chosen by a fixed seed, in a copy of the project.
Sixty are in the pure core; the tests of their package run with kernels as plain Python. Twenty are beside it; tests of whole programs run on them too.
A mutant is found by ``make test``, by ``make test-all`` only, or survives. The result is a line per mutant, and JSON with ``--json``.
"""

import argparse
import ast
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = {"world/geometry": "geometry", "parts/vehicle/physics": "vehicle", "protocols": "protocols", "parts/rangefinders": "rangefinders"}
CORE |= {name: name for name in ("sensor", "emulator")}
BESIDE = {name: name for name in ("daemon", "protocols", "config")} | {"parts/replays": "replays"}
"""Packages below ``hilsim``, with the folders of their tests; ten mutants of each, and five of each."""
_LIMIT_S = 900
_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def sites(tree):
    """Nodes of functions that a mutant may change, with how; annotations and docstrings are none."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
                    found.append((node, "op"))
                elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
                    found.append((node, "ops"))
                elif isinstance(node, ast.BoolOp):
                    found.append((node, "op"))
                elif isinstance(node, ast.Constant) and type(node.value) in {int, float}:
                    found.append((node, "value"))
    return found


def mutate(node, how):
    """Change a node in place; what was changed, for people."""
    before = ast.unparse(node)
    if how == "ops":
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif how == "op":
        node.op = _SWAPS[type(node.op)]()
    else:
        node.value = node.value + 1 if node.value != 1 else 2
    return f"line {node.lineno}: {before} -> {ast.unparse(node)}"


def mutants(seed):
    """``(path, text of the mutated file, what was changed, folder of tests, whether kernels run as Python)`` of each mutant."""
    for packages, each, is_plain in ((CORE, 10, True), (BESIDE, 5, False)):
        chance = random.Random(seed)  # noqa: S311 - no secret
        for package, folder in packages.items():
            files = [path for path in sorted((ROOT / "hilsim" / package).rglob("*.py")) if sites(ast.parse(path.read_text()))]
            for path in chance.sample(files, each) if len(files) >= each else [chance.choice(files) for _ in range(each)]:
                tree = ast.parse(path.read_text())
                node, how = chance.choice(sites(tree))
                change = mutate(node, how)
                yield path.relative_to(ROOT), ast.unparse(tree), change, folder, is_plain


def steps(folder, *, is_plain):
    """Arguments of pytest, cheapest first, with ``True`` for those of tests that ``make test`` runs."""
    own = f"tests/unit/{folder}"
    everything = ("-m", "not alone and not service")
    yield (own,), True
    if is_plain:
        yield (*everything, own), False
    else:
        yield ("tests/unit/api", "tests/unit/assembly", "tests/unit/offline", "tests/golden", "tests/system"), True
        yield (*everything, own, "tests/system"), False


def found_by(path, text, folder, place, *, is_plain):
    """``test``, ``test-all`` or nothing: whose tests fail with the mutant; each call has a copy of the project at ``place``."""
    original = (place / path).read_text()
    (place / path).write_text(text)
    environment = os.environ | ({"NUMBA_DISABLE_JIT": "1", "NUMBA_ENABLE_CUDASIM": "1"} if is_plain else {})
    try:
        for arguments, is_quick in steps(folder, is_plain=is_plain):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *arguments]
            try:
                code = subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=_LIMIT_S, check=False).returncode
            except subprocess.TimeoutExpired:
                code = 1  # it runs for ever
            if code:
                return "test" if is_quick else "test-all"
    finally:
        (place / path).write_text(original)
    return ""


def _copy(folder, number):
    place = Path(folder) / str(number)
    place.mkdir()
    for name in ("hilsim", "tests", "profiles", "docs", "examples", "systemd", "bench", "tools"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def main():
    """Try all mutants, two at a time; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="hilsim-mutants-") as folder:
        places = [_copy(folder, number) for number in range(2)]

        def try_share(number):
            for index, (path, text, change, tests, is_plain) in enumerate(mutants(arguments.seed)):
                if index % 2 == number:
                    found = found_by(path, text, tests, places[number], is_plain=is_plain)
                    rows.append({"path": str(path), "change": change, "found_by": found})
                    sys.stdout.write(f"{found or 'SURVIVES':9} {path}: {change}\n")
                    sys.stdout.flush()

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(try_share, range(2)))
    by = [row["found_by"] for row in rows]
    sys.stdout.write(f"{len(rows)} mutants: make test finds {by.count('test')}, make test-all {len(rows) - by.count('')}\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(sorted(rows, key=lambda row: (row["path"], row["change"])), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
