"""A Numba whose private parts are not known: it is recognised and named in one sentence, and kernels compiled by it give the same bytes."""

import ast
import hashlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import pytest

import hilsim
from hilsim.compilation import internals
from hilsim.compilation.internals import INTERNALS, TRIED_SERIES, Internal, differences, unknown_internals
from tests.compiled import compiled_only
from tests.depth import IS_DEEP
from tests.renderers import CpuRenderer, cast
from tests.unit.api.rigs import room
from tests.unit.render.backend_rays import rays, scene

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "numba.md"
PRETENDED = "import numba; numba.__version__ = '99.1.0'\n"
"""Before hilsim is imported: it compares versions then."""
SENTENCE = f"hilsim was not tried with Numba 99.1.0 (tried: {', '.join(TRIED_SERIES)}), so kernels are compiled by plain Numba: starts take longer, packets are the same"
CACHE = ROOT / ".pytest_cache" / "unknown-numba"
"""Kernels that plain Numba compiled, for the next run of the same sources: to compile them takes a minute."""
REPLACES = [
    path for path in sorted(Path(internals.__file__).parent.glob("*.py")) if path.stem in {"dispatcher", "function_cache", "linking", "references"}
]


def run(code, home, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "CACHE_DIRECTORY", "HILSIM_PLAIN"))}
    environment |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(home)} | more
    command = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True, timeout=880)


def test_the_installed_numba_is_known():
    """Else starts are slow everywhere: try the new series (docs/reference/numba.md) and add it to TRIED_SERIES."""
    assert unknown_internals() == ""


def test_another_series_is_not_known(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "99.1.0")
    assert unknown_internals() == SENTENCE


def test_an_operator_can_ask_for_plain_numba(monkeypatch):
    monkeypatch.setenv("HILSIM_PLAIN_NUMBA", "1")
    assert unknown_internals().startswith("HILSIM_PLAIN_NUMBA is set, so kernels are compiled by plain Numba")


def test_a_missing_name_is_named(monkeypatch):
    monkeypatch.setattr(internals, "INTERNALS", (Internal("numba.core.codegen", "JITCodeLibrary", {}, ("_gone",)),))
    internals._found.cache_clear()
    try:
        assert unknown_internals().startswith(f"Numba {numba.__version__} has no numba.core.codegen.JITCodeLibrary._gone as hilsim knows it, so")
    finally:
        internals._found.cache_clear()


@pytest.mark.parametrize(
    ("internal", "missing"),
    [
        (Internal("numba.core.nowhere", "f"), "numba.core.nowhere.f"),
        (Internal("numba.core.sigutils", "gone"), "numba.core.sigutils.gone"),
        (Internal("numba.core.sigutils", "normalize_signature", {"": ("other",)}), "numba.core.sigutils.normalize_signature"),
        (Internal("numba.core.codegen", "JITCodeLibrary", {"gone": ("self",)}), "numba.core.codegen.JITCodeLibrary.gone"),
        (Internal("numba.core.codegen", "JITCodeLibrary", {"finalize": ("self", "more")}), "numba.core.codegen.JITCodeLibrary.finalize"),
    ],
)
def test_missing_or_changed_internals_are_found(internal, missing):
    assert list(differences((internal,))) == [missing]


def digest_of_packets(directory):
    """A digest of whole frames with range noise and several rays a beam."""
    packets = hilsim.Emulator(room(Path(directory))).packets(0.0, 0.1)
    return hashlib.sha256(b"".join(packet.frame for packet in packets)).hexdigest()


def digest_of_hits(_directory):
    """A digest of what rays meet, sixteen at a time, in a world with movers and with keys that are written meanwhile."""
    return hashlib.sha256(b"".join(column.tobytes() for column in cast(CpuRenderer(), scene(), *rays()))).hexdigest()


COMPARED = "digest_of_packets" if IS_DEEP else "digest_of_hits"
"""Plain Numba compiles what makes whole packets in two minutes of a core, and what casts rays in a tenth of that."""


@compiled_only
@pytest.mark.timeout(900)
def test_an_unknown_numba_gives_the_same_bytes_and_says_so_in_one_sentence(tmp_path):
    code = (
        PRETENDED
        + f"""
import sys
from tests.unit.compilation import test_plain
print(test_plain.{COMPARED}({str(tmp_path)!r}))
print(any("compilation.dispatcher" in name or "compilation.linking" in name for name in sys.modules))
"""
    )
    ran = run(code, CACHE)
    digest, is_replaced = ran.stdout.splitlines()
    assert digest == globals()[COMPARED](tmp_path)
    assert is_replaced == "False"
    assert ran.stderr.splitlines() == [SENTENCE]


KERNEL = """
from hilsim.protocols.nmea import civil_date
civil_date(19782)
print(bool(civil_date.stats.cache_hits))
"""


@compiled_only
def test_kernels_compiled_by_plain_numba_have_a_separate_cache(tmp_path):
    assert run(PRETENDED + KERNEL, tmp_path).stdout.split() == ["False"]
    assert run(PRETENDED + KERNEL, tmp_path).stdout.split() == ["True"]
    assert run(KERNEL, tmp_path).stdout.split() == ["False"]


@compiled_only
def test_plain_numba_compiles_without_a_directory_to_keep_kernels_in(tmp_path):
    (tmp_path / "hilsim").write_text("a file where the directory would be")
    assert run(PRETENDED + KERNEL, tmp_path).stdout.split() == ["False"]


@compiled_only
def test_one_process_at_a_time_compiles_with_plain_numba(tmp_path):
    code = """
    from hilsim.compilation.cache import is_claimed
    from hilsim.compilation.jit import kernel
    from hilsim.protocols.nmea import civil_date
    import subprocess, sys
    from numba.core import event
    class Ask(event.Listener):
        def on_start(self, _): print(subprocess.run([sys.executable, '-c', ASKS], capture_output=True, text=True).stdout.strip())
        def on_end(self, _): pass
    ASKS = "from hilsim.compilation.cache import is_claimed; print(is_claimed('plain Numba'))"
    event.register('numba:compile', Ask())
    civil_date(19782)
    print(subprocess.run([sys.executable, '-c', ASKS], capture_output=True, text=True).stdout.strip())
    """
    answers = run(code, tmp_path, HILSIM_PLAIN_NUMBA="1").stdout.split()
    assert set(answers[:-1]) == {"True"}
    assert answers[-1] == "False"


def test_the_page_names_every_private_name_that_is_listed():
    page = PAGE.read_text(encoding="utf-8")
    wanted = {internal.name for internal in INTERNALS}
    wanted |= {attribute for internal in INTERNALS for attribute in internal.attributes}
    wanted |= {function for internal in INTERNALS for function in internal.parameters if function}
    assert sorted(name for name in wanted if not re.search(rf"\b{name}\b", page)) == []


def test_the_page_names_every_series_that_was_tried_and_the_installed_numba():
    page = PAGE.read_text(encoding="utf-8")
    assert [series for series in TRIED_SERIES if f"| {series}." not in page] == []
    assert f"| {numba.__version__} |" in page


@pytest.mark.parametrize("path", REPLACES, ids=lambda path: path.stem)
def test_every_name_of_numba_that_is_imported_and_every_private_attribute_is_on_the_page(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {
        target.attr if isinstance(target, ast.Attribute) else target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in ast.walk(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if isinstance(target, ast.Attribute | ast.Name)
    }
    imported = {
        name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba.") for name in node.names
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)} - own
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(name for name in imported | used if not re.search(rf"\b{name}\b", page)) == []
