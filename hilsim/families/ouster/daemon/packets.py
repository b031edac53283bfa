"""Packets of a rig's Ouster that follow the state of its control interface.

What packets contain is a timed change of kind ``sensor``, which begins with a turn; where they go, and whether they go at all, acts on the next datagram.
"""

import asyncio
import time
from dataclasses import replace
from typing import Any

from hilsim.assembly.build import source_mac
from hilsim.config.script import SensorChange
from hilsim.daemon.interfaces.controlled import ControlledPackets
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import ConfigError, HilsimError
from hilsim.families.ouster.family import OusterFamily
from hilsim.families.ouster.interface.answers import Conditions
from hilsim.families.ouster.interface.state import KEPT, ControlState, Streams
from hilsim.families.ouster.packets import own_clock_ns
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind
from hilsim.families.ouster.setting import OusterSetting
from hilsim.sensor.clock import device_from_rig

_NS_PER_S = 1e9
_PASSED_NS = 2_000_000
"""Time after a change in which the last packets from before it leave."""


class RigPackets(ControlledPackets[ControlState, Conditions]):
    """Packets of one sensor of a running rig."""

    def __init__(self, sensor: ServedSensor) -> None:
        """Take a sensor of the rig."""
        super().__init__(sensor)
        self._begun_s = time.monotonic()
        self._changed_ns = 0
        self._applied = self._family.setting
        self._rig_streams = self.at_start().streams

    @property
    def _family(self) -> OusterFamily:
        family = self._sensor.lidar.setting.family
        if not isinstance(family, OusterFamily):
            raise TypeError("this control interface belongs to an Ouster")
        return family

    # State

    def at_start(self) -> ControlState:
        """State that the packets of now show, at the destination that the rig gives."""
        lidar = self._sensor.lidar
        return ControlState.of(
            self._family.metadata(
                lidar.setting.stream,
                destination=lidar.data_flow.destination,
                data_port=lidar.data_flow.destination_port,
                position_port=lidar.position_flow.destination_port,
            )
        )

    def present(self, state: ControlState) -> ControlState:
        """The state with what a script, the control interface of the daemon or a reload has changed meanwhile."""
        setting = self._family.setting
        if setting == self._applied:
            return state
        self._applied = setting
        found = self.at_start()
        streams = {name: state.active[name] for name in ("udp_dest", "udp_port_lidar", "udp_port_imu")}
        active = {**state.active, **{key: value for key, value in found.active.items() if key in state.active}, **streams}
        return replace(state, active=active, staged=active, initialization_id=found.initialization_id).initialized()

    def conditions(self) -> Conditions:
        """Address, times and clock of the sensor now."""
        lidar, clock = self._sensor.lidar, self._sensor.changes.clock
        rig_ns = max(clock.now_ns(), 0)
        plan = lidar.plan
        follows = self._sensor.follows_time(rig_ns)
        return Conditions(
            address=self._sensor.spec.network.source,
            mac=source_mac(self._sensor.spec, self._sensor.setting),
            uptime_ns=int((time.monotonic() - self._begun_s) * _NS_PER_S),
            device_ns=int(own_clock_ns(plan.own, plan.clock, int(device_from_rig(plan.clock, rig_ns)))),
            utc_ns=clock.utc_epoch_ns + rig_ns,
            is_phase_locked=lidar.setting.setup.phase_lock_deg is not None and follows,
            has_master=follows and self._family.setting.timestamp_mode == "TIME_FROM_PTP_1588",
        )

    # Following

    async def follow(self, former: ControlState, state: ControlState) -> None:
        """Make packets follow a new state.

        Raises:
            ConfigError: the rig cannot be changed so, or packets cannot be sent there; then they are as they were.
        """
        change = self._change(state) if state.initialization_id != former.initialization_id else None
        await asyncio.to_thread(self._redirect, state.streams)
        if change is not None:
            self._silence(state)
            try:
                await self._make(change)
            except HilsimError:
                await asyncio.to_thread(self._redirect, former.streams)
                self._silence(former)
                raise
        elif state.is_sending and not former.is_sending:
            wait_ns = self._changed_ns + _PASSED_NS - self._sensor.changes.clock.now_ns()
            await asyncio.sleep(max(wait_ns / _NS_PER_S, 0.0))
        self._silence(state)

    async def _make(self, change: SensorChange) -> None:
        made = await self._sensor.changes.make(change)
        self._applied = self._family.setting
        self._changed_ns = made.begun_ns.get(self._sensor.spec.name, made.at_ns)

    def _change(self, state: ControlState) -> SensorChange:
        """The timed change to a state.

        Raises:
            ConfigError: packets cannot be so.
        """
        active, former = state.active, self._family.setting
        own = "FUSA" if PROFILES[active["udp_profile_lidar"]].header is HeaderKind.FUSA else "STANDARD"
        if active.get("header_type", own) != own:
            raise ConfigError(f"header_type must be {own} for {active['udp_profile_lidar']}, got {active['header_type']}, which is not emulated")
        first, last = active["azimuth_window"]
        given: dict[str, Any] = {key: active[key] for key in ("return_order", "min_range_threshold_cm") if key in active}
        try:
            setting = replace(
                former,
                lidar_mode=active["lidar_mode"],
                udp_profile_lidar=active["udp_profile_lidar"],
                udp_profile_imu=active["udp_profile_imu"],
                azimuth_window_mdeg=(first, last),
                signal_multiplier=float(active["signal_multiplier"]),
                timestamp_mode=active["timestamp_mode"],
                operating_mode=active["operating_mode"],
                initialization_id=state.initialization_id,
                first_frame=0,
                **given,
            )
        except ValueError as error:
            raise ConfigError(str(error)) from error
        lock = {"phase_lock": True, "phase_lock_deg": active["phase_lock_offset"] / 1000.0 % 360.0} if active["phase_lock_enable"] else {}
        if not lock and self._sensor.lidar.setting.setup.phase_lock_deg is not None:
            lock = {"phase_lock": False}
        return SensorChange(sensor=self._sensor.spec.name, ouster=setting, **lock)

    def _redirect(self, streams: Streams) -> None:
        """Send to another destination from the next datagram on; where there is none, the former one is kept and ``_silence`` acts.

        Raises:
            ConfigError: the socket cannot be opened; both destinations are as they were.
        """
        if streams.address:
            self._sensor.redirect(streams.address, (streams.lidar_port, streams.imu_port), key="udp_dest")

    def _silence(self, state: ControlState) -> None:
        streams, is_sending = state.streams, bool(state.is_sending and state.streams.address)
        self._sensor.silence(data=not (is_sending and streams.lidar_port), others=not (is_sending and streams.imu_port))

    def restore(self) -> ControlState:
        """Send again, to where the rig says, after a reload; returns the state then."""
        self._redirect(self._rig_streams)
        self._applied = self._family.setting
        state = self.at_start()
        self._silence(state)
        return state

    def settle(self, state: ControlState) -> None:
        """Send as a state at the start says: nothing in standby."""
        self._silence(state)

    def restarted(self, state: ControlState, document: Any) -> ControlState:
        """The state that a restart with a saved document gives."""
        kept = {name: type(getattr(state, name))(document[name]) if name != "static_address" else document[name] for name in KEPT}
        restarted = replace(state.stage(document["config_params"], ""), **kept).reinitialize()
        same = metadata_document(restarted.metadata)["config_params"] == metadata_document(state.metadata)["config_params"]
        return replace(state if same else restarted, saved=restarted.active, **kept)

    @property
    def setting(self) -> OusterSetting:
        """Settings that packets show now."""
        return self._family.setting
