"""Send the vehicle's true pose as HIL_STATE_QUATERNION to ground stations that request it, and never to the controller."""

import asyncio
import time

import numpy as np

from hilsim.parts.vehicle.flying import FlyingVehicle
from hilsim.parts.vehicle.ground_stations.forwarding import Forwarder
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import HIL_STATE_QUATERNION, build_draft, build_origin
from hilsim.world.geometry.frames import frd_from_flu, ned_from_enu
from hilsim.world.geometry.geodesy import geodetic_at
from hilsim.world.geometry.rotations import ned_from_frd

PERIOD_S = 0.05
COMPONENT_ID = 201
"""Component id of these messages, other than hilsim's 200, whose frames on the controller's link so have numbers without gaps."""
_MG_PER_MPS2 = 1000.0 / 9.80665


async def tell_truth(vehicle: FlyingVehicle, forwarder: Forwarder) -> None:
    """Send the true pose until cancelled, if any station requests it."""
    if not any(station.spec.truth for station in forwarder.stations):
        return
    sender = TruthSender(vehicle)
    await asyncio.to_thread(sender.frame)  # compiles the kernel, if it is not in the cache
    while True:
        await asyncio.sleep(PERIOD_S)
        forwarder.tell_truth(sender.frame())


class TruthSender:
    """Maker of frames with a vehicle's true pose."""

    def __init__(self, vehicle: FlyingVehicle) -> None:
        self._vehicle = vehicle
        self._draft = build_draft(HIL_STATE_QUATERNION)
        self._origin = build_origin(vehicle.spec.controller.system_id, COMPONENT_ID)
        self._frame = np.zeros(LARGEST_FRAME, np.uint8)

    def frame(self) -> bytes:
        """Make the next frame, with the present pose."""
        vehicle, truth, record = self._vehicle, self._vehicle.truth, self._draft.record
        latitude, longitude, altitude_m = geodetic_at(vehicle.home, truth.position_m)
        force = vehicle.loop_setup.flight.state.specific_force_mps2.tolist()
        record["time_usec"] = time.monotonic_ns() // 1000
        record["attitude_quaternion"] = ned_from_frd(truth.orientation)
        record["rollspeed"], record["pitchspeed"], record["yawspeed"] = frd_from_flu(truth.rates_radps)
        record["lat"], record["lon"], record["alt"] = round(latitude * 1e7), round(longitude * 1e7), round(altitude_m * 1e3)
        for name, speed in zip(("vx", "vy", "vz"), ned_from_enu(truth.velocity_mps), strict=True):
            record[name] = _short(100.0 * speed)
        record["ind_airspeed"] = record["true_airspeed"] = min(round(100.0 * truth.speed_mps), 65_535)
        for name, part in zip(("xacc", "yacc", "zacc"), frd_from_flu((force[0], force[1], force[2])), strict=True):
            record[name] = _short(_MG_PER_MPS2 * part)
        size = write_frame(HIL_STATE_QUATERNION, self._draft.payload, self._origin, self._frame)
        return self._frame[:size].tobytes()


def _short(value: float) -> int:
    return round(min(max(value, -32_768.0), 32_767.0))
