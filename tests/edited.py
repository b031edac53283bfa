"""A copy of hilsim with the changes that a page of the documentation shows, as a reader who follows it would make them."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.pages import ROOT, blocks_of


@dataclass(frozen=True, kw_only=True)
class Edits:
    """What to do with the blocks of a page; Python and text are counted each from 0.

    Attributes:
        files: New files, by the number of the block that shows them.
        spec: Class of the new table, with its module.
        field: Block of the field of ``RigSpec``.
        line: Block of text with the field's line in the docstring.
        part: File with the table ``KINDS``.
        kinds: Block that replaces it.
        imports: What that file then imports.
    """

    files: dict[int, str]
    spec: tuple[str, str]
    field: int
    line: int
    part: str
    kinds: int
    imports: str


EDITS = {
    "add-an-output.md": Edits(
        files={0: "hilsim/capture/sinks/bytes_log.py"},
        spec=("hilsim.capture.sinks.bytes_log", "BytesLogSpec"),
        field=1,
        line=0,
        part="hilsim/daemon/sinks/part.py",
        kinds=2,
        imports="from hilsim.capture.sinks.bytes_log import BytesLogSink",
    ),
}
PART = {0: "hilsim/parts/heartbeats/kind.py"}
"""New file of the page ``add-a-serial-device.md``, by its block; the next block is a line of the list of parts."""


def edited_copy(page: str, directory: Path) -> dict[str, str]:
    """Make the copy in ``directory``, and return what the environment of a process must have in addition to import it."""
    path = ROOT / "docs" / "how-to" / page
    python, text = ([block.text for block in blocks_of(path, language)] for language in ("python", "text"))
    edits = EDITS.get(page)
    files = edits.files if edits else PART
    shutil.copytree(ROOT / "hilsim", directory / "hilsim", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", directory / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "reference", directory / "docs" / "reference")
    (directory / "profiles").symlink_to(ROOT / "profiles")
    for number, name in files.items():
        assert f"`{name}`" in path.read_text(encoding="utf-8"), f"{page} names no {name}"
        assert not (directory / name).exists(), f"{name} is there already"
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(python[number])
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, (str(directory), os.environ.get("PYTHONPATH"))))}
    if edits is None:
        _edit(directory / "hilsim" / "registry.py", r"^OWN_PARTS = \{\n(?:    .*\n)*\}\n", lambda _: python[1])
        return environment
    module, name = edits.spec
    _edit(directory / "hilsim" / "config" / "rig.py", r"^from hilsim", f"from {module} import {name}\nfrom hilsim")
    _edit(directory / "hilsim" / "config" / "rig.py", r'^    """\n\n    name: str$', text[edits.line] + '    """\n\n    name: str')
    _edit(directory / "hilsim" / "config" / "rig.py", r"^    control: .*\n", lambda found: found[0] + python[edits.field])
    _edit(directory / edits.part, r"^from hilsim", f"{edits.imports}\nfrom hilsim")
    _edit(directory / edits.part, r"^KINDS: .*\n", lambda _: python[edits.kinds])
    return environment


def _edit(path, pattern, replacement):
    changed, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, f"{path} has no {pattern}"
    path.write_text(changed)
