"""Where shipped profiles are, and which there are: in the wheel beside the package, in a checkout at its top. Imports nothing slow."""

import difflib
from collections.abc import Iterable
from pathlib import Path

from hilsim.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent
_OTHER_NAMES = {
    "puck": "vlp16",
    "vlp16a": "vlp16",
    "pucklite": "vlp16",
    "hdl32": "hdl32e",
    "hr80t": "hr80t-like",
    "hr80w": "hr80w-like",
    "x90": "x90-generic",
}
"""What people call sensors that a shipped profile stands in for."""
_ONLY_READ = {
    "vlp32c": "VLP-32C",
    "vlp32": "VLP-32C",
    "hdl64e": "HDL-64E",
    "hdl64": "HDL-64E",
    "vls128": "VLS-128",
}
"""Models whose captures are read, by their plain names; told only while no profile of that name is shipped."""


def profiles_directory() -> Path:
    """The directory of shipped profiles.

    Raises:
        ConfigError: the installation has none.
    """
    for place in (_PACKAGE / "_profiles", _PACKAGE.parent / "profiles"):
        if place.is_dir():
            return place
    raise ConfigError(f"{_PACKAGE}: the installation has no profiles; install hilsim-lidar again")


def shipped_names(kind: str) -> list[str]:
    """Names of the shipped profiles of a kind (``sensors``, ``vehicles`` or ``rigs``), sorted."""
    return sorted(entry.stem for entry in (profiles_directory() / kind).glob("*.toml"))


def guess(name: str, known: list[str]) -> str:
    """What somebody may have meant by a name that is not shipped, as the end of a sentence; empty where nothing is near.

    Args:
        name: What was given, like ``"VLP-16"``.
        known: Names of shipped profiles.
    """
    plain = _plain(name)
    by_plain = {_plain(entry): entry for entry in known}
    told = ""
    if plain in _ONLY_READ:
        told = f"; captures of a {_ONLY_READ[plain]} are read, but there is no profile to emulate one"
        plain = "vlp16"
    plain = _plain(_OTHER_NAMES.get(plain, plain))
    near = difflib.get_close_matches(plain, by_plain, n=1)
    return told + (f'; did you mean "{by_plain[near[0]]}"?' if near else "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``'; did you mean "run"?'``, or nothing where no known word is near; case does not count, nor do dashes."""
    plain = {name.lower().replace("-", "").replace("_", ""): name for name in known}
    near = difflib.get_close_matches(word.lower().replace("-", "").replace("_", ""), plain, n=1)
    return f'; did you mean "{plain[near[0]]}"?' if near else ""
