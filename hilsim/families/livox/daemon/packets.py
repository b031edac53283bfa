"""Packets of a rig's Livox that follow the state of its control interface.

What packets contain is a timed change of kind ``sensor``, from the next packet on; where they go, and whether they go at all, acts on the next datagram.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hilsim.assembly.build import sensor_flows, source_mac
from hilsim.config.script import SensorChange
from hilsim.daemon.interfaces.controlled import ControlledPackets
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import ConfigError, HilsimError
from hilsim.families.livox.family import LivoxFamily
from hilsim.families.livox.interface.keys import (
    ATTITUDE,
    BLIND_SPOT,
    DETECTION,
    FIRST_FOV,
    FOV,
    FOV_ENABLED,
    IMU_ENABLED,
    IMU_HOST,
    INSTALLATION,
    MODELS,
    POINT_HOST,
    POINT_TYPE,
    SECOND_FOV,
    STATE_HOST,
    TARGET,
    Destination,
    Work,
)
from hilsim.families.livox.interface.state import Conditions, LidarState, Unit
from hilsim.families.livox.packets import own_clock_ns
from hilsim.families.livox.protocol.commands import ReturnCode
from hilsim.families.livox.setting import LivoxSetting
from hilsim.protocols.ethernet import parse_mac
from hilsim.sensor.clock import device_from_rig
from hilsim.units import NS_PER_S

_DETECTION = ("normal", "sensitive")


def values_of(setting: LivoxSetting, *, has_blind_spot: bool) -> dict[int, bytes]:
    """Values of the keys that ``[sensor.livox]`` sets."""
    windows = {key: FOV.pack(*window, 0) for key, window in zip((FIRST_FOV, SECOND_FOV), setting.fov_deg, strict=True)}
    return {
        POINT_TYPE: bytes([setting.pcl_data_type]),
        TARGET: bytes([Work[setting.work_mode.upper()]]),
        IMU_ENABLED: bytes([setting.imu]),
        INSTALLATION: ATTITUDE.pack(*setting.install_rotation_deg, *setting.install_position_mm),
        DETECTION: bytes([_DETECTION.index(setting.detect_mode)]),
        **({BLIND_SPOT: setting.blind_spot_cm.to_bytes(4, "little")} if has_blind_spot else {**windows, FOV_ENABLED: bytes([setting.fov_enable])}),
    }


def setting_of(values: Mapping[int, bytes], former: LivoxSetting) -> LivoxSetting:
    """``[sensor.livox]`` of the values of keys; what they do not say is as in the former one."""
    roll, pitch, yaw, *position = ATTITUDE.unpack(values[INSTALLATION])
    x, y, z = position
    own: dict[str, object] = {"blind_spot_cm": int.from_bytes(values[BLIND_SPOT], "little")} if BLIND_SPOT in values else {}
    if FIRST_FOV in values:
        own = {"fov_deg": tuple(FOV.unpack(values[key])[:4] for key in (FIRST_FOV, SECOND_FOV)), "fov_enable": values[FOV_ENABLED][0]}
    return replace(
        former,
        pcl_data_type=values[POINT_TYPE][0],  # type: ignore[arg-type] # keys accept no other values
        work_mode=Work(values[TARGET][0]).name.lower(),  # type: ignore[arg-type]
        imu=bool(values[IMU_ENABLED][0]),
        install_rotation_deg=(roll, pitch, yaw),
        install_position_mm=(x, y, z),
        detect_mode=_DETECTION[values[DETECTION][0]],  # type: ignore[arg-type]
        **own,  # type: ignore[arg-type]
    )


class RigPackets(ControlledPackets[LidarState, Conditions]):
    """Packets of one sensor of a running rig."""

    def __init__(self, sensor: ServedSensor) -> None:
        """Take a sensor of the rig."""
        super().__init__(sensor)
        self._applied = self._setting
        network, (model, ports) = sensor.spec.network, MODELS[self._family.spec.dev_type]
        points, imu = (each.flow for each in sensor_flows(sensor.spec, sensor.setting))
        self._unit = Unit(
            model=model,
            device_type=self._family.spec.dev_type,
            serial=self._family.serial(sensor.setting.stream),
            title=f"{self._family.spec.model}, emulated",
            mac=parse_mac(source_mac(sensor.spec, sensor.setting)),
            address=network.source,
            ports=ports,
            boot_ns=round(sensor.web.boot_s * NS_PER_S),
        )
        address = points.destination
        self._hosts = {
            STATE_HOST: Destination(address=address, port=ports.push + ports.step),
            POINT_HOST: Destination(address=address, port=points.destination_port),
            IMU_HOST: Destination(address=address, port=imu.destination_port),
        }

    @property
    def _family(self) -> LivoxFamily:
        family = self._sensor.lidar.setting.family
        if not isinstance(family, LivoxFamily):
            raise TypeError("this control interface belongs to a Livox")
        return family

    @property
    def _setting(self) -> LivoxSetting:
        return self._family.setting

    def _values(self, setting: LivoxSetting) -> dict[int, bytes]:
        return values_of(setting, has_blind_spot=self._family.is_hap)

    # State

    def at_start(self) -> LidarState:
        """State of the sensor as it is now, switched on at rig time 0, with the destinations that the rig gives."""
        hosts = {key: host.value(self._unit.ports.of(key)) for key, host in self._hosts.items()}
        return LidarState.of(self._unit, {**self._values(self._setting), **hosts})

    def present(self, state: LidarState) -> LidarState:
        """The state with what a script, the control interface of the daemon or a reload has changed meanwhile."""
        setting = self._setting
        if setting == self._applied:
            return state
        former, self._applied = self._values(self._applied), setting
        changed = [(key, value) for key, value in self._values(setting).items() if value != former[key]]
        return state.written(changed, self.conditions().now_ns)[0]

    def conditions(self) -> Conditions:
        """Rig time, and time of the sensor's clock."""
        clock = self._sensor.changes.clock
        rig_ns = max(clock.now_ns(), 0)
        plan = self._sensor.lidar.plan
        local_ns = int(own_clock_ns(plan.clock, int(device_from_rig(plan.clock, rig_ns))))
        return Conditions(now_ns=rig_ns, local_ns=local_ns, time_type=int(plan.own.time_type))

    # Following

    async def follow(self, former: LidarState, state: LidarState) -> None:
        """Make packets follow new values.

        Raises:
            HilsimError: the rig cannot be changed so, or packets cannot be sent there; then packets are as they were.
        """
        if state.state_host != former.state_host and not self._sensor.web.permits(state.state_host.address):
            allowed = " or ".join(self._sensor.web.destinations)
            raise ConfigError(f"state_info_host_ipcfg must be in {allowed} (sensor.web.destinations of the rig), got {state.state_host.address}")
        setting = setting_of(state.values, self._setting)
        try:
            await asyncio.to_thread(self._redirect, state)
            if self._values(setting) != self._values(self._setting):
                await self.change(SensorChange(sensor=self._sensor.spec.name, livox=setting))
        except HilsimError:
            await asyncio.to_thread(self._redirect, former)
            raise
        self._applied = self._setting

    def _redirect(self, state: LidarState) -> None:
        """Send to other destinations from the next datagram on.

        Raises:
            ConfigError: a socket cannot be opened, or ``sensor.web.destinations`` does not permit it.
        """
        for name, host, ports in (
            ("pointcloud_host_ipcfg", state.point_host, (state.point_host.port, 0)),
            ("imu_host_ipcfg", state.imu_host, (0, state.imu_host.port)),
        ):
            self._sensor.redirect(host.address, ports, key=name)

    def show(self, state: LidarState, now_ns: int) -> None:
        """Send what the state sends at a rig time, and nothing else."""
        self._sensor.silence(data=not state.sends_points(now_ns), others=not state.sends_imu(now_ns))

    def restore(self) -> LidarState:
        """Send again, to where the rig says, after a reload; returns the state then."""
        self._applied = self._setting
        state = self.at_start()
        self._redirect(state)
        return state

    def restarted(self, state: LidarState, document: Any) -> LidarState:
        """The state with saved values."""
        pairs = [(int(key, 16), bytes.fromhex(value)) for key, value in document.items()]
        then, code, key = state.written(pairs, self.conditions().now_ns)
        if code is not ReturnCode.OK:
            raise ValueError(f"0x{key:04x} = {dict(pairs)[key].hex()}")
        return then
