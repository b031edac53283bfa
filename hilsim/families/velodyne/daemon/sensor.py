"""One sensor behind its web interface: its settings as they are now, and the change of them while packets flow."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import structlog

from hilsim.assembly.build import source_mac
from hilsim.config.script import SensorChange
from hilsim.daemon.interfaces.part import KeptSettings
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.emulator.breaking.head_and_clock import pulse_state, slipped_turns, thermal_status
from hilsim.errors import HilsimError
from hilsim.families.velodyne.protocol.web_interface import (
    GpsConditions,
    HostSetting,
    NetSetting,
    WebSettings,
    WebStatus,
    changed_by_form,
    diagnostics_document,
    forms_of,
    info_document,
    position_text,
    settings_document,
    status_document,
)
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.read.background.files.whole_file import replace_file
from hilsim.sensor.clock import device_from_rig
from hilsim.sensor.head import head_turns, mean_rate_rpm
from hilsim.sensor.specs import PpsState
from hilsim.sensor.time_input import Qualifiers
from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")


class WebSensor(KeptSettings):
    """A sensor with its saved settings and its pauses."""

    def __init__(self, sensor: ServedSensor) -> None:
        """Take a sensor of the rig; its settings of now are the saved ones."""
        self._sensor, self._spec, self._setting = sensor, sensor.spec, sensor.setting
        self._begun_s = time.monotonic()
        self._is_still = False
        self._phase_cdeg = 0
        self._gps = GpsConditions(**asdict(self._spec.time_input.qualifiers)) if self._spec.time_input is not None else GpsConditions()
        self._booting: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        network, lidar = self._spec.network, sensor.lidar
        self._host = HostSetting(
            address=lidar.data_flow.destination, data_port=lidar.data_flow.destination_port, position_port=lidar.position_flow.destination_port
        )
        self._rig_host, self._net = self._host, NetSetting(address=network.source)
        self._saved = self.settings()

    @property
    def _profile(self) -> VelodyneSpec:
        if not isinstance(self._setting.spec, VelodyneSpec):
            raise TypeError("a web interface belongs to a Velodyne")
        return self._setting.spec

    # Documents

    def settings(self) -> WebSettings:
        """Settings as they are now, also those that a script or the control interface has changed."""
        setup = self._sensor.lidar.setting.setup
        return WebSettings(
            laser=self._sensor.fires,
            returns=setup.return_mode,
            rpm=0 if self._is_still else mean_rate_rpm(setup),
            fov_deg=setup.field_of_view_deg,
            phase_lock=setup.phase_lock_deg is not None,
            phase_cdeg=self._phase_cdeg if setup.phase_lock_deg is None else round(setup.phase_lock_deg * 100.0),
            gps=self._gps,
            host=self._host,
            net=self._net,
        )

    def _status(self) -> WebStatus:
        lidar, heard = self._sensor.lidar, self._sensor.time_input
        gps, plan = lidar.setting.setup.gps, lidar.plan
        rig_ns = max(self._sensor.changes.clock.now_ns(), 0)
        device_ns = int(device_from_rig(plan.clock, rig_ns))
        slipped = [float(slipped_turns(plan.rare, plan, device_ns - ago_ns)) for ago_ns in (0, NS_PER_S)]
        turns = 0.0 if self._is_still else (float(head_turns(plan.head, device_ns)) + slipped[0]) % 1.0
        generated = "" if gps is None or not gps.valid else position_text(gps.latitude_deg, gps.longitude_deg)
        return WebStatus(
            phase_cdeg=min(int(turns * 36_000.0), 35_999),
            is_locked=plan.head.is_locked and not self._is_still,
            pps=PpsState(pulse_state(plan.rare, plan, rig_ns)).name.title(),
            rpm=None if slipped[0] == slipped[1] else max(round(plan.head.rate_crpm / 100.0 + 60.0 * (slipped[0] - slipped[1])), 0),
            position=heard.position if heard is not None and heard.position else generated,
            uptime_s=time.monotonic() - self._begun_s,
            is_shut_down=bool(thermal_status(plan.rare, rig_ns)[0]),
        )

    def document(self, name: str) -> Mapping[str, Any]:
        """One of the documents ``info``, ``settings``, ``status``, ``diag`` and ``snapshot``."""
        settings, status = self.settings(), self._status()
        match name:
            case "info":
                number = self._setting.stream + 1
                return info_document(
                    self._setting.spec.model, self._sensor.web.serial or f"{11_001_000_000_000 + number}", source_mac(self._spec, self._setting)
                )
            case "settings":
                return settings_document(settings)
            case "status":
                return status_document(settings, status)
            case "diag":
                return diagnostics_document(settings, status, self._sensor.context.rig.spec.seed + self._setting.stream)
            case "snapshot":
                return {
                    name: self.document(part) for name, part in (("config", "settings"), ("diag", "diag"), ("status", "status"), ("info", "info"))
                }
        raise KeyError(name)

    # Settings

    async def submit(self, path: str, form: Sequence[tuple[str, str]]) -> None:
        """Apply a form (``changed_by_form``); returns when packets show it.

        Raises:
            ConfigError: the rig cannot be changed so.
            ValueError: a key or value is wrong; nothing was changed.
        """
        async with self._changing:
            now, spec = self.settings(), self._profile
            rates = range(spec.rate_min_rpm, spec.rate_max_rpm + 1, spec.rate_step_rpm)
            await self._apply(now, changed_by_form(path, form, now, rates_rpm=rates))

    async def _apply(self, now: WebSettings, new: WebSettings) -> None:
        keys = self._changed_keys(now, new)
        if keys:
            await self._sensor.changes.make(SensorChange(sensor=self._spec.name, **keys))
        if new.host != now.host:
            await asyncio.to_thread(self._redirect, new.host)
        self._is_still = new.rpm == 0
        self._net, self._phase_cdeg, self._gps = new.net, new.phase_cdeg, new.gps
        heard = self._sensor.time_input
        if heard is not None:
            heard.qualifiers = Qualifiers(**asdict(new.gps))
        self._silence()

    def _changed_keys(self, now: WebSettings, new: WebSettings) -> dict[str, Any]:
        """Keys of the timed change from one state of the settings to another."""
        keys: dict[str, Any] = {}
        if new.laser != now.laser:
            keys["laser"] = new.laser
        if new.returns != now.returns:
            keys["return_mode"] = new.returns
        if new.fov_deg != now.fov_deg:
            keys["field_of_view_deg"] = new.fov_deg
        if (new.phase_lock, new.phase_cdeg) != (now.phase_lock, now.phase_cdeg) and (new.phase_lock or now.phase_lock):
            keys |= {"phase_lock": True, "phase_lock_deg": new.phase_cdeg / 100.0 % 360.0} if new.phase_lock else {"phase_lock": False}
        if new.rpm not in {0, mean_rate_rpm(self._sensor.lidar.setting.setup)}:
            keys["rotation_rate_rpm"] = new.rpm
        return keys

    def _redirect(self, host: HostSetting) -> None:
        """Send to another destination from the next datagram on.

        Raises:
            ConfigError: the sensor sends whole frames, or the socket cannot be opened; the destination is as it was.
        """
        self._sensor.redirect(host.address, (host.data_port, host.position_port), key="host")
        self._host = host

    def _silence(self) -> None:
        """Send no data while the head stands still, and nothing while the sensor starts."""
        boots = self._booting is not None and not self._booting.done()
        self._sensor.silence(data=boots or self._is_still, others=boots)

    def restore(self) -> None:
        """Send again, and to where the rig says."""
        self._is_still = False
        if self._host != self._rig_host:
            self._redirect(self._rig_host)
        self._silence()

    async def save(self) -> None:
        """Keep the present settings over a reset, and in a file over a restart if the rig names one.

        Raises:
            AssetError: the file cannot be written; nothing was saved.
        """
        async with self._changing:  # two that write one file at once would take it from each other
            settings = self.settings()
            if self._sensor.saved_file is not None:
                text = json.dumps(settings_document(settings), indent=2) + "\n"
                await asyncio.to_thread(replace_file, self._sensor.saved_file, text.encode())
            self._saved = settings

    async def load_saved(self) -> None:
        """Take over the settings of the file of saved ones, if there is one; a file that cannot be used is logged, as a unit whose memory is lost starts."""
        if self._sensor.saved_file is None or not self._sensor.saved_file.exists():
            return
        try:
            document = json.loads(await asyncio.to_thread(self._sensor.saved_file.read_text, encoding="utf-8"))
            for path, form in forms_of(document):
                await self.submit(path, form)
        except (OSError, ValueError, HilsimError) as error:
            log.warning("sensor.web.saved_not_used", sensor=self._spec.name, file=str(self._sensor.saved_file), reason=str(error))
            return
        self._saved = self.settings()
        log.info("sensor.web.saved_used", sensor=self._spec.name, file=str(self._sensor.saved_file))

    async def reset(self) -> None:
        """Start anew: nothing is sent for a while, and then with the saved settings."""
        async with self._changing:
            if self._booting is None or self._booting.done():
                self._booting = asyncio.create_task(self._boot(), name=f"boot-{self._spec.name}")
                self._silence()

    async def _boot(self) -> None:
        await asyncio.sleep(self._sensor.web.boot_s)
        await self.start_again()

    def answers(self) -> bool:
        """Whether it answers requests: no fault on command has taken its power."""
        return self._sensor.answers

    async def start_again(self) -> None:
        """Run with the saved settings."""
        async with self._changing:
            with suppress(HilsimError):  # the rig ends meanwhile
                await self._apply(self.settings(), self._saved)
            self._begun_s = time.monotonic()
            self._booting = None
            self._silence()

    async def close(self) -> None:
        """End a start that is under way."""
        if self._booting is not None:
            self._booting.cancel()
            with suppress(asyncio.CancelledError):
                await self._booting
