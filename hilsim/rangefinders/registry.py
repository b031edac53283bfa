"""Every kind of ranger that a rig can ask for, and the sensor that is made of its specification."""

from collections.abc import Sequence

from hilsim.rangefinders.base import Ranger
from hilsim.rangefinders.ld06 import Ld06
from hilsim.rangefinders.sf45 import Sf45
from hilsim.rangefinders.specs import Ld06Spec, RangerSpec, Sf45Spec, TfminiSpec
from hilsim.rangefinders.tfmini import Tfmini

RANGER_SPECS: dict[str, type[RangerSpec]] = {"tfmini": TfminiSpec, "sf45": Sf45Spec, "ld06": Ld06Spec}
"""Specification of each ``kind``, for whoever parses a rig."""


def ranger_names(specs: Sequence[RangerSpec]) -> tuple[str, ...]:
    """What each of a rig's rangers is called: its kind, numbered where there are several."""
    kinds = [next(kind for kind, made in RANGER_SPECS.items() if isinstance(spec, made)) for spec in specs]
    return tuple(f"{kind}-{kinds[:place].count(kind) + 1}" if kinds.count(kind) > 1 else kind for place, kind in enumerate(kinds))


def build_ranger(spec: RangerSpec, *, seed: int, stream: int) -> Ranger:
    """The sensor of a specification; its noise is drawn from the rig's seed and the ranger's number.

    Raises:
        TypeError: the specification is of no kind that is known here.
    """
    match spec:
        case TfminiSpec():
            return Tfmini(spec, seed=seed, stream=stream)
        case Sf45Spec():
            return Sf45(spec, seed=seed, stream=stream)
        case Ld06Spec():
            return Ld06(spec, seed=seed, stream=stream)
    raise TypeError(f"spec must be a TfminiSpec, Sf45Spec or Ld06Spec, got {type(spec).__name__}")
