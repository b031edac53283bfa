"""Check of a sensor's profile against the packets."""

from hilsim.background.survey import FoundSensor, Kind
from hilsim.errors import CaptureError
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.sensor.specs import LidarSpec


def check_named(named: LidarSpec, found: FoundSensor, where: str) -> None:
    """Reject a profile that does not match the sensor found in the packets.

    Args:
        named: The profile that the user gave.
        found: The model found in the packets.
        where: Name of their source.

    Raises:
        CaptureError: the packets have another family, or identify another model.
    """
    if found.kind is Kind.VELODYNE:
        if found.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the packets' model, got one of a {named.model} and packets of {found}")
    elif not isinstance(named, CeptonSpec):
        raise CaptureError(f'{where}: --profile must be of family "cepton" for Cepton packets, got one of a {named.model} and packets of {found}')
