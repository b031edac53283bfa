"""Location and names of shipped profiles: in a wheel beside the package, in a checkout at its top. Imports nothing slow."""

import difflib
from collections.abc import Iterable
from pathlib import Path

from hilsim.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent
_OTHER_NAMES = {
    "puck": "vlp16",
    "vlp16a": "vlp16",
    "pucklite": "vlp16",
    "puckhires": "puck-hi-res",
    "vlp16hires": "puck-hi-res",
    "vlp32": "vlp32c",
    "ultrapuck": "vlp32c",
    "alphaprime": "vls128",
    "hdl32": "hdl32e",
    "hr80t": "hr80t-like",
    "hr80w": "hr80w-like",
    "x90": "x90-generic",
}
"""Common names of sensors with a shipped profile."""
_ONLY_READ = {
    "hdl64e": "HDL-64E",
    "hdl64": "HDL-64E",
}
"""Models whose captures can be read, by their plain names; listed only if no profile of the model is shipped."""


SDF_SUFFIXES = (".sdf", ".world", ".urdf")
"""Suffixes of SDF and URDF files accepted as a rig: their lidars are published to Gazebo's subscribers."""


def profiles_directory() -> Path:
    """Directory of the shipped profiles.

    Raises:
        ConfigError: the installation has no profiles.
    """
    for place in (_PACKAGE / "_profiles", _PACKAGE.parent / "profiles"):
        if place.is_dir():
            return place
    raise ConfigError(f"{_PACKAGE}: the installation has no profiles; install hilsim-lidar again")


def shipped_names(kind: str) -> list[str]:
    """Names of the shipped profiles of a kind (``sensors``, ``vehicles`` or ``rigs``), sorted."""
    return sorted(entry.stem for entry in (profiles_directory() / kind).glob("*.toml"))


def rig_path(text: str) -> Path:
    """Path of a rig: a given path, or a shipped rig by its name.

    Raises:
        ConfigError: it is neither; the message lists the shipped rigs.
    """
    path = Path(text)
    if path.suffix in {".toml", *SDF_SUFFIXES} or path.exists():
        return path
    names = shipped_names("rigs")
    if text in names:
        return profiles_directory() / "rigs" / f"{text}.toml"
    raise ConfigError(
        f'rig must be a .toml or .sdf file or one of the shipped ones ({", ".join(names)}), got "{text}"{did_you_mean(text, names, of_models=True)}'
    )


def did_you_mean(word: str, known: Iterable[str], *, of_models: bool = False) -> str:
    """Suggestion for an unknown word, as the end of a sentence: ``'; did you mean "run"?'``, or empty without a similar known word.

    Args:
        word: Unknown word, such as ``"VLP-16"``; case and dashes are ignored.
        known: Known words.
        of_models: Whether they are names of sensors: common names are then included, and models whose captures can only be read.
    """
    by_plain = {_plain(name): name for name in known}
    plain, note = _plain(word), ""
    if of_models:
        plain = _plain(_OTHER_NAMES.get(plain, _ONLY_READ.get(plain, plain)))
        if plain not in by_plain and plain in _ONLY_READ:
            plain, note = "vlp16", f"; captures of a {_ONLY_READ[plain]} are read, but there is no profile to emulate one"
    near = difflib.get_close_matches(plain, by_plain, n=1)
    return note + (f'; did you mean "{by_plain[near[0]]}"?' if near else "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
