"""Captures that hilsim records of sensors like those of the real captures, for tests that need some capture and not a real unit's bytes."""

from dataclasses import dataclass
from pathlib import Path

from tests import commands
from tests.support import ROOM, write_rig


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """What is recorded.

    Attributes:
        sensor: Lines of the sensor's table.
        duration_s: Rig time.
    """

    sensor: str
    duration_s: float


STAND_INS = {
    "vlp16_strongest_gps.pcap": StandIn(sensor='profile = "vlp16"', duration_s=0.4),
    "vlp16_dual.pcap": StandIn(sensor='profile = "vlp16"\nreturn_mode = "dual"', duration_s=0.4),
    "vlp16_strongest_1200rpm.pcap": StandIn(sensor='profile = "vlp16"\nrotation_rate_rpm = 1200', duration_s=2.5),
    "vlp32c_strongest_fov.pcap": StandIn(sensor='profile = "vlp32c"\nfield_of_view_deg = [270, 90]', duration_s=0.5),
    "hdl32e_strongest.pcap": StandIn(sensor='profile = "hdl32e"', duration_s=1.5),
    "vls128_strongest.pcap": StandIn(sensor='profile = "vls128"', duration_s=0.35),
}
_NETWORK = '[sensor.network]\nsource = "192.168.1.201"\ndestination = "255.255.255.255"\nbroadcast = true\n'
_ROOM = ROOM.replace('sub_rays = 1\nunit = "ideal"\n', "").replace("[-10.5,", "[-310.5,")
"""A drawn unit, with a real one's anomalies, before a wall that is out of its range: some firings are without a return."""
_TIMEOUT_S = 300


def record_stand_in(name: str, directory: Path) -> Path:
    """Record the stand-in of that name, unless the directory holds it."""
    path = directory / name
    if not path.exists():
        stand_in = STAND_INS[name]
        rig = write_rig(directory, f"{_ROOM}{stand_in.sensor}\n{_NETWORK}", f"{path.stem}.toml")
        commands.run("record", rig, "-o", path, "--duration-s", stand_in.duration_s).check_returncode()
    return path
