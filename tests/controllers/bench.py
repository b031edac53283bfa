"""A whole flight in virtual time: hilsim's vehicle, the tests' bridge and the scripted controller."""

from functools import partial

import numpy as np

from hilsim.faults.catalogue import Effect
from hilsim.parts.vehicle.autopilot.breaking import break_fix, break_readings, gps_silence
from hilsim.protocols.mavlink.messages import HIL_GPS_DTYPE
from hilsim_flight_controller.controller import Px4, Px4Spec
from tests.controllers.aircraft import Aircraft
from tests.controllers.bridge import Bridge
from tests.controllers.cable import UTC_AT_ZERO_US, run

_READINGS = (
    "xacc",
    "yacc",
    "zacc",
    "xgyro",
    "ygyro",
    "zgyro",
    "xmag",
    "ymag",
    "zmag",
    "abs_pressure",
    "diff_pressure",
    "pressure_alt",
    "temperature",
)


class FaultyBridge(Bridge):
    """A bridge that changes messages as hilsim's faults do; ``faults`` are a ``FaultTable``."""

    def __init__(self, faults, body, **keys):
        super().__init__(body, **keys)
        self.faults = faults
        self.last = np.zeros(len(_READINGS), np.float32)
        self.last_fix = None

    def on_sensor(self, now_us, fields):
        reading = np.array([fields[name] for name in _READINGS], np.float32)
        withheld = break_readings(self.faults, now_us * 1000, self.last, reading)
        self.last = reading
        return fields | dict(zip(_READINGS, reading.tolist(), strict=True)) | {"fields_updated": fields["fields_updated"] & ~int(withheld)}

    def on_gps(self, now_us, fields):
        record = np.zeros(1, HIL_GPS_DTYPE)
        for name, value in fields.items():
            record[name] = value
        break_fix(self.faults, self.body.home, now_us * 1000, record)
        self.silence = gps_silence(self.faults, now_us * 1000)
        if self.silence == 0 or self.last_fix is None:
            self.last_fix = {name: int(record[0][name]) for name in fields}
        return self.last_fix

    def send(self, message):
        if message.get_type() != "HIL_GPS" or self.silence != Effect.SILENCE:
            super().send(message)


class Bench:
    """A vehicle, a bridge and a controller; ``at`` maps seconds to what then happens to both, ``faults`` are a ``FaultTable`` of the vehicle."""

    def __init__(self, name="iris", *, wind=None, station=None, at=None, period_us=4000, faults=None, **spec):
        self.aircraft = Aircraft(name, wind=wind, period_us=period_us, faults=faults)
        link = {"serial": spec.get("serial", True), "lockstep": spec.get("lockstep", False)}
        bridge = Bridge if faults is None else partial(FaultyBridge, faults)
        self.bridge = bridge(self.aircraft, **link, period_us=period_us, utc_at_zero_us=UTC_AT_ZERO_US)
        self.controller = Px4(Px4Spec(utc_at_zero_us=UTC_AT_ZERO_US, **spec))
        self.station = station
        self.at = {round(second * 1e6): happening for second, happening in (at or {}).items()}

    def fly(self, until_s=60.0, *, begin_s=0.0):
        self.go_on(begin_s, until_s)
        return self.controller.close()

    def go_on(self, begin_s, until_s):
        """A part of a flight."""
        run(self.bridge, self.controller, until_s, begin_s=begin_s, each=self._each, stop=self._ended)

    def _ended(self):
        return self.controller.done or (self.station and self.station.done)

    @property
    def top_m(self):
        return max(row[3] for row in self.aircraft.track)

    def _each(self, now_us):
        if now_us in self.at:
            self.at[now_us](self.controller, now_us)
        if self.controller.unplugged:
            self.bridge.unplugged()
        if self.station:
            for datagram in self.bridge.to_ground:
                self.station.receive(now_us, datagram)
            for datagram in self.station.advance(now_us):
                self.bridge.from_ground(datagram)
        self.bridge.to_ground.clear()
