"""Whether a sensor's profile can be that of the packets."""

from hilsim.background.survey import FoundSensor, Kind
from hilsim.errors import CaptureError
from hilsim.sensor.cepton_specs import CeptonSpec
from hilsim.sensor.specs import LidarSpec


def check_named(named: LidarSpec, found: FoundSensor, where: str) -> None:
    """Refuse a profile that cannot be that of a sensor which was found.

    Args:
        named: The profile that the user gave.
        found: The model found in the packets.
        where: What to call their source.

    Raises:
        CaptureError: the packets are of another family, or name another model.
    """
    if found.kind is Kind.VELODYNE:
        if found.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the packets' model, got one of a {named.model} and packets of {found}")
    elif not isinstance(named, CeptonSpec):
        raise CaptureError(f'{where}: --profile must be of family "cepton" for Cepton packets, got one of a {named.model} and packets of {found}')
