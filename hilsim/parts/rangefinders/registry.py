"""Kinds of range sensors in a rig: a new kind is one line of the table."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, NamedTuple

from pydantic import Discriminator

from hilsim.parts.rangefinders.base import Rangefinder
from hilsim.parts.rangefinders.ld06 import Ld06, Ld06Spec
from hilsim.parts.rangefinders.sf45 import Sf45, Sf45Spec
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.parts.rangefinders.tfmini import Tfmini, TfminiSpec


class RangefinderKind(NamedTuple):
    """One kind of range sensor.

    Attributes:
        spec: Specification of its table in the rig.
        build: Builds the sensor of a specification; ``seed`` and ``stream`` are keyword arguments.
    """

    spec: type[RangefinderSpec]
    build: Callable[..., Rangefinder]


RANGEFINDERS: dict[str, RangefinderKind] = {
    "tfmini": RangefinderKind(TfminiSpec, Tfmini),
    "sf45": RangefinderKind(Sf45Spec, Sf45),
    "ld06": RangefinderKind(Ld06Spec, Ld06),
}
"""Kinds by the value of ``kind``."""
AnyRangefinderSpec: Any = Annotated[reduce(or_, [kind.spec for kind in RANGEFINDERS.values()]), Discriminator("kind")]
"""Type of ``[[rangefinder]]`` for the parser of a rig."""


def rangefinder_names(specs: Sequence[RangefinderSpec]) -> tuple[str, ...]:
    """Names of a rig's range sensors: the kind, numbered where there are several."""
    kinds = [_kind_of(spec) for spec in specs]
    return tuple(f"{kind}-{kinds[:place].count(kind) + 1}" if kinds.count(kind) > 1 else kind for place, kind in enumerate(kinds))


def build_rangefinder(spec: RangefinderSpec, *, seed: int, stream: int) -> Rangefinder:
    """Build the sensor of a specification; its noise depends on the rig's seed and the sensor's number.

    Raises:
        TypeError: the specification is of an unknown kind.
    """
    return RANGEFINDERS[_kind_of(spec)].build(spec, seed=seed, stream=stream)


def _kind_of(spec: Any) -> str:
    found = next((name for name, kind in RANGEFINDERS.items() if isinstance(spec, kind.spec)), None)
    if found is None:
        raise TypeError(f"spec must be of one of the kinds {', '.join(RANGEFINDERS)}, got {type(spec).__name__}")
    return found
