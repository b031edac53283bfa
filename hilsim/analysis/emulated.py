"""Points of an emulated lidar's data packets, decoded as their receivers do."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.decode import decode_packets
from hilsim.emulator.setting import LidarSetting
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.families.ouster.family import OusterFamily
from hilsim.families.ouster.points import OusterDecoder
from hilsim.families.ouster.setting import OusterSetting
from hilsim.families.ouster.specs import OusterSpec
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.setup import SensorSetup

_DECODERS = 16
"""Sensors and settings whose directions are stored: those of 128 beams take 3 MB each."""


def decode_emulated(payloads: npt.NDArray[np.uint8], setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode data packets of one emulated lidar.

    Args:
        payloads: ``uint8[n, size]``.
        setting: Setting of the lidar.

    Returns:
        Points ``decode.POINT_DTYPE[m]`` in the order of their bytes; those of an Ouster have more fields.

    Raises:
        ValueError: packets of its family cannot be decoded here, or have another size.
    """
    spec = setting.spec
    if isinstance(spec, VelodyneSpec | CeptonSpec):
        return decode_packets(payloads, spec)
    if isinstance(spec, OusterSpec):
        decoder = _decoder(spec, setting.setup.ouster or OusterSetting())
        return decoder.points(np.ascontiguousarray(payloads[:, : decoder.layout.size]))
    raise ValueError(f"points of a {spec.model} cannot be decoded: its family, {setting.family.name}, is a plug-in's with packets of its own")


@lru_cache(_DECODERS)
def _decoder(spec: OusterSpec, setting: OusterSetting) -> OusterDecoder:
    family = OusterFamily(spec, SensorSetup(ouster=setting))
    return OusterDecoder(family.metadata(0, destination="", data_port=None, position_port=None))
