"""``python -m tests.runs.mutants``: sixty small faults in the pure core, one at a time, and whether its tests find them.

Each mutant changes one operator, comparison or number of a function, chosen by a fixed seed, in a copy of the project.
The tests of its package run on it with kernels as plain Python. The result is a line per mutant, and JSON with ``--json``.
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

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("geometry", "vehicle", "protocols", "rangefinders", "sensor", "emulator")
EACH = 10
_LIMIT_S = 400
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
    """``(path, text of the mutated file, what was changed)`` of each mutant."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for package in PACKAGES:
        files = [path for path in sorted((ROOT / "hilsim" / package).rglob("*.py")) if sites(ast.parse(path.read_text()))]
        for path in chance.sample(files, EACH) if len(files) >= EACH else [chance.choice(files) for _ in range(EACH)]:
            tree = ast.parse(path.read_text())
            node, how = chance.choice(sites(tree))
            change = mutate(node, how)
            yield path.relative_to(ROOT), ast.unparse(tree), change


def is_found(path, text, place, depth):
    """Whether the package's tests fail with the mutant; each call has a copy of the project at ``place``."""
    original = (place / path).read_text()
    (place / path).write_text(text)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "NUMBA_ENABLE_CUDASIM": "1", "HILSIM_TEST_DEPTH": depth}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/unit/{path.parts[1]}"]
    try:
        code = subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=_LIMIT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1  # it runs for ever
    finally:
        (place / path).write_text(original)
    return code != 0


def _copy(folder, number):
    place = Path(folder) / str(number)
    place.mkdir()
    for name in ("hilsim", "tests", "profiles", "docs", "examples", "systemd", "bench", "tools"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def main():
    """Try all mutants, two at a time; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.runs.mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="hilsim-mutants-") as folder:
        places = [_copy(folder, number) for number in range(2)]

        def try_share(number):
            for index, (path, text, change) in enumerate(mutants(arguments.seed)):
                if index % 2 == number:
                    by_few = is_found(path, text, places[number], "")
                    by_many = by_few or is_found(path, text, places[number], "deep")
                    rows.append({"path": str(path), "change": change, "found": by_few, "found_in_depth": by_many})
                    sys.stdout.write(f"{'found' if by_few else 'IN DEPTH ONLY' if by_many else 'survives':13} {path}: {change}\n")
                    sys.stdout.flush()

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(try_share, range(2)))
    found, deep = sum(row["found"] for row in rows), sum(row["found_in_depth"] for row in rows)
    sys.stdout.write(f"{found} of {len(rows)} found, {deep} with many examples\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(sorted(rows, key=lambda row: (row["path"], row["change"])), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
