"""Packets of a rig's Hesai that follow the state of its control interface.

What packets contain is a timed change of kind ``sensor``, from the next packet on; where they go, and whether they go at all, acts on the next datagram.
"""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np

from hilsim.assembly.build import sensor_flows, source_mac
from hilsim.config.script import SensorChange
from hilsim.daemon.interfaces.controlled import ControlledPackets
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import HilsimError
from hilsim.families.hesai.family import HesaiFamily
from hilsim.families.hesai.interface.requests import GPS, PTP, Conditions
from hilsim.families.hesai.interface.state import RETURN_CODES, HesaiState, Unit, numbers_of
from hilsim.families.hesai.protocol.ptc import Command, ReturnCode
from hilsim.families.hesai.setting import PAIRS
from hilsim.protocols.ethernet import parse_mac
from hilsim.sensor.head import mean_rate_rpm
from hilsim.sensor.setup import WHOLE_TURN_DEG

_FIRST_SERIAL = 1_000_001
_SOURCES = {"gps": GPS, "ptp": PTP}


def _numbers(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "big") for number in numbers)


def values_of(family: HesaiFamily) -> dict[int, bytes]:
    """Payloads of the settings that ``[[sensor]]`` has."""
    setup, mode = family.setup, family.mode.name.lower()
    first_deg, last_deg = setup.field_of_view_deg
    lock_deg = setup.phase_lock_deg
    return {
        Command.SPIN_RATE: _numbers(mean_rate_rpm(setup)),
        Command.SYNC_ANGLE: bytes([lock_deg is not None]) + _numbers(round(100.0 * (lock_deg or 0.0)) % 36_000),
        Command.RETURN_MODE: bytes([RETURN_CODES[family.spec.model][mode]]),
        Command.CLOCK_SOURCE: bytes([_SOURCES[family.setting.clock_source]]),
        Command.FIELD_OF_VIEW: b"\0" + _numbers(10 * first_deg, 10 * (last_deg + 1)),
    }


def keys_of(command: int, payload: bytes, family: HesaiFamily) -> dict[str, Any]:
    """Keys of the setup that a setting gives."""
    setting: Any = family.setting  # its keys are enumerations of words
    match command:
        case Command.SPIN_RATE:
            return {"rotation_rate_rpm": int.from_bytes(payload, "big")}
        case Command.SYNC_ANGLE:
            return {"phase_lock_deg": numbers_of(payload, at=1)[0] / 100.0 if payload[0] else None}
        case Command.FIELD_OF_VIEW:
            first, last = numbers_of(payload, at=1)
            return {"field_of_view_deg": (first // 10 % 360, (last - 1) // 10 % 360) if (last - first) % 3600 else WHOLE_TURN_DEG}
        case Command.CLOCK_SOURCE:
            return {"hesai": replace(setting, clock_source=next(name for name, source in _SOURCES.items() if source == payload[0]))}
    name = next(name for name, code in RETURN_CODES[family.spec.model].items() if code == payload[0])
    if name in PAIRS:
        return {"return_mode": "dual", "hesai": replace(setting, pair=name)}
    return {"return_mode": "last" if name == "last" else "strongest", "hesai": replace(setting, first_return=name == "first")}


class RigPackets(ControlledPackets[HesaiState, Conditions]):
    """Packets of one sensor of a running rig."""

    def __init__(self, sensor: ServedSensor) -> None:
        """Take a sensor of the rig."""
        super().__init__(sensor)
        self._applied = values_of(self._family)
        setting, spec, plan = sensor.setting, self._family.spec, sensor.lidar.plan
        self._unit = Unit(
            model=spec.model,
            serial=sensor.web.serial or f"{spec.model.upper()}{_FIRST_SERIAL + setting.stream}",
            mac=parse_mac(source_mac(sensor.spec, setting)),
            angles_deg=tuple(zip(plan.elevation_deg.tolist(), np.degrees(plan.azimuth_offset_rad).tolist(), strict=True)),  # the unit's own
            is_counted=spec.is_counted,
        )

    @property
    def _family(self) -> HesaiFamily:
        family = self._sensor.lidar.setting.family
        if not isinstance(family, HesaiFamily):
            raise TypeError("this control interface belongs to a Hesai")
        return family

    # State

    def at_start(self) -> HesaiState:
        """State of the sensor as it is now, switched on at rig time 0, with the destinations that the rig gives."""
        data, gps = (each.flow for each in sensor_flows(self._sensor.spec, self._sensor.setting))
        own = bytes(map(int, self._sensor.spec.network.source.split(".")))
        return HesaiState.of(
            self._unit,
            {
                **values_of(self._family),
                Command.DESTINATION: bytes(map(int, data.destination.split("."))) + _numbers(data.destination_port, gps.destination_port),
                Command.NETWORK: own + bytes((255, 255, 255, 0)) + own[:3] + bytes((1, 0, 0, 0)),
            },
        )

    def present(self, state: HesaiState) -> HesaiState:
        """The state with what a script, the control interface of the daemon or a reload has changed meanwhile."""
        former, now = self._applied, values_of(self._family)
        if now == former:
            return state
        self._applied = now
        return replace(state, values={**state.values, **{command: payload for command, payload in now.items() if payload != former[command]}})

    def conditions(self) -> Conditions:
        """Rig time, UTC, and whether the clock follows its source."""
        clock = self._sensor.changes.clock
        now_ns = max(clock.now_ns(), 0)
        return Conditions(now_ns=now_ns, utc_ns=clock.utc_epoch_ns + now_ns, is_locked=self._sensor.follows_time(now_ns))

    # Following

    async def follow(self, former: HesaiState, state: HesaiState) -> None:
        """Make packets follow new settings.

        Raises:
            HilsimError: the rig cannot be changed so, or packets cannot be sent there; then packets are as they were.
        """
        try:
            await asyncio.to_thread(self._send_to, state)
            keys = self._keys(state)
            if keys:
                await self.change(SensorChange(sensor=self._sensor.spec.name, **keys))
        except HilsimError:
            await asyncio.to_thread(self._send_to, former)
            raise
        self._applied = values_of(self._family)
        self._silence(state)

    def _keys(self, state: HesaiState) -> dict[str, Any]:
        """Keys of the timed change to a state."""
        family = self._family
        keys: dict[str, Any] = {}
        for command, payload in values_of(family).items():
            given = keys_of(command, state.values[command], family) if state.values[command] != payload else {}
            changed = replace(family.setup, **given)
            if changed != family.setup:
                keys |= given
                family = replace(family, setup=changed)
        if "phase_lock_deg" in keys:
            keys["phase_lock"] = keys["phase_lock_deg"] is not None
        return keys

    def _send_to(self, state: HesaiState) -> None:
        self._sensor.redirect(*state.destination, key="destination")

    def _silence(self, state: HesaiState) -> None:
        self._sensor.silence(data=not state.is_sending, others=not state.is_sending)

    def restore(self) -> HesaiState:
        """Send again, and to where the rig says, after a reload; returns the state then."""
        self._applied = values_of(self._family)
        state = self.at_start()
        self._send_to(state)
        self._silence(state)
        return state

    def restarted(self, state: HesaiState, document: Any) -> HesaiState:
        """The state with saved settings."""
        for command, payload in document.items():
            state, code = state.written(int(command, 16), bytes.fromhex(payload))
            if code is not ReturnCode.OK:
                raise ValueError(f"{command} = {payload}")
        return state
