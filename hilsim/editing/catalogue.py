"""Catalogue of the library: its objects, and the materials to choose from."""

from dataclasses import dataclass
from typing import Any

from hilsim.config.places import did_you_mean
from hilsim.errors import ConfigError
from hilsim.world.assets.library import LIBRARY, library_names

_PAINTS = ("paint_white", "paint_silver", "paint_black", "paint_red", "paint_blue")
_CLOTHES = ("clothing", "paint_black", "paint_white")
_FACES = ("retro_sign", "paint_white")


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """An object of the library.

    Attributes:
        name: Name, such as ``saloon``.
        group: ``car``, ``person`` or ``road``.
        part: Part whose material is the user's choice; empty: none.
        materials: Materials to choose from, the usual one first.
    """

    name: str
    group: str
    part: str = ""
    materials: tuple[str, ...] = ()

    def keys(self, material: str = "") -> dict[str, Any]:
        """Keys of a ``[[scene.mesh]]`` table.

        Args:
            material: Material of the part that the user chooses: one of ``materials`` or of the rig; empty: the first.
        """
        chosen = material or (self.materials[0] if self.materials else "")
        return {"file": LIBRARY + self.name, **({"materials": {self.part: chosen}} if self.part else {})}


def _entry(name: str) -> CatalogueEntry:
    if name in {"saloon", "hatchback", "van"}:
        return CatalogueEntry(name=name, group="car", part="body", materials=_PAINTS)
    if name.startswith(("person", "child")):
        return CatalogueEntry(name=name, group="person", part="clothes", materials=_CLOTHES)
    if name.endswith("-sign"):
        return CatalogueEntry(name=name, group="road", part="face", materials=_FACES)
    return CatalogueEntry(name=name, group="road")


CATALOGUE: dict[str, CatalogueEntry] = {name: _entry(name) for name in library_names()}
"""Every object of the library, by its name."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """An object of the library.

    Raises:
        ConfigError: there is none of the name.
    """
    if name not in CATALOGUE:
        raise ConfigError(f'name must be one of the library ({", ".join(CATALOGUE)}), got "{name[:80]}"{did_you_mean(name[:80], CATALOGUE)}')
    return CATALOGUE[name]
