"""Where shipped profiles are: in the wheel beside the package, in a checkout at its top."""

from pathlib import Path

from hilsim.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent


def profiles_directory() -> Path:
    """The directory of shipped profiles.

    Raises:
        ConfigError: the installation has none.
    """
    for place in (_PACKAGE / "_profiles", _PACKAGE.parent / "profiles"):
        if place.is_dir():
            return place
    raise ConfigError(f"{_PACKAGE}: the installation has no profiles; install hilsim-lidar again")


def find_profile(kind: str, name: str, rig_directory: Path) -> Path:
    """Path of a profile.

    Args:
        kind: ``sensors`` or ``rigs``.
        name: A shipped profile's name (``vlp16``) or a path, relative to the rig's own directory.
        rig_directory: The directory of the rig that names it.

    Raises:
        ConfigError: there is none; the text lists the shipped ones.
    """
    if name.endswith(".toml") or "/" in name:
        path = rig_directory / name
        if path.is_file():
            return path
        raise ConfigError(f"{path}: no such profile")
    shipped = profiles_directory() / kind
    path = shipped / f"{name}.toml"
    if path.is_file():
        return path
    names = ", ".join(sorted(entry.stem for entry in shipped.glob("*.toml")))
    raise ConfigError(f'profile must be a path ending in .toml or one of the shipped ones ({names}), got "{name}"')
