"""Every kind of range sensor that a rig can ask for: a new one is a line in each of the two tables."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Discriminator

from hilsim.rangefinders.base import Rangefinder
from hilsim.rangefinders.ld06 import Ld06, Ld06Spec
from hilsim.rangefinders.sf45 import Sf45, Sf45Spec
from hilsim.rangefinders.specs import RangefinderSpec
from hilsim.rangefinders.tfmini import Tfmini, TfminiSpec

AnyRangefinderSpec = Annotated[TfminiSpec | Sf45Spec | Ld06Spec, Discriminator("kind")]
"""What ``[[rangefinder]]`` may be, for whoever parses a rig."""


class RangefinderKind(NamedTuple):
    """One kind.

    Attributes:
        spec: Its table in the rig.
        build: The sensor of a specification, ``seed`` and ``stream`` by name.
    """

    spec: type[RangefinderSpec]
    build: Callable[..., Rangefinder]


RANGEFINDERS: dict[str, RangefinderKind] = {
    "tfmini": RangefinderKind(TfminiSpec, Tfmini),
    "sf45": RangefinderKind(Sf45Spec, Sf45),
    "ld06": RangefinderKind(Ld06Spec, Ld06),
}
"""By ``kind``."""


def rangefinder_names(specs: Sequence[RangefinderSpec]) -> tuple[str, ...]:
    """What each of a rig's range sensors is called: its kind, numbered where there are several."""
    kinds = [_kind_of(spec) for spec in specs]
    return tuple(f"{kind}-{kinds[:place].count(kind) + 1}" if kinds.count(kind) > 1 else kind for place, kind in enumerate(kinds))


def build_rangefinder(spec: RangefinderSpec, *, seed: int, stream: int) -> Rangefinder:
    """The sensor of a specification; its noise is drawn from the rig's seed and the sensor's number.

    Raises:
        TypeError: the specification is of no kind that is known here.
    """
    return RANGEFINDERS[_kind_of(spec)].build(spec, seed=seed, stream=stream)


def _kind_of(spec: Any) -> str:
    found = next((name for name, kind in RANGEFINDERS.items() if isinstance(spec, kind.spec)), None)
    if found is None:
        raise TypeError(f"spec must be of one of the kinds {', '.join(RANGEFINDERS)}, got {type(spec).__name__}")
    return found
