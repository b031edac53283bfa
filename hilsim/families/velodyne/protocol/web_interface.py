"""The web interface of a Velodyne: documents that its paths answer, and settings that its forms change.

======================  ======================================================================
path                    answer, or keys of the form
======================  ======================================================================
/cgi/info.json          model, serial number, MAC address
/cgi/settings.json      laser, returns, rpm, fov, phaselock, host, net
/cgi/status.json        gps, motor, laser
/cgi/diag.json          voltages and temperatures, raw counts of 12 bits
/cgi/snapshot.hdl       config (settings), diag and status in one document
/cgi/setting            rpm, returns, laser
/cgi/setting/fov        start, end
/cgi/setting/host       addr, dport, tport
/cgi/setting/net        addr, mask, gateway, dhcp
/cgi/setting/phaselock  enabled, offset
======================  ======================================================================

Types are those that clients rely on: rpm and the field of view are numbers, ports and the offset of the phase lock are texts. Sources: VLP-16 user manual 63-9243, chapter 10
and its Python example (a form is answered with 204); VLS-128 manual 63-9483 page 81 (status, scaling of counts); source code of three public clients
(Autoware's monitor, nebula's hardware interface, a ROS configuration node) and a sample of a real VLP-16's documents.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilsim.errors import require

_STOPPED_RPM = 0
_VOLTS_PER_COUNT = 5.0 / 4096.0
_COUNT_MAX = 4095
_RETURNS = {"strongest": "Strongest", "last": "Last", "dual": "Dual"}
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, kw_only=True)
class HostSetting:
    """Destination of packets.

    Attributes:
        address: IPv4 address.
        data_port: Port of data packets.
        position_port: Port of position packets.
    """

    address: str
    data_port: int
    position_port: int


@dataclass(frozen=True, kw_only=True)
class NetSetting:
    """Network address of the sensor: stored and shown; a sensor takes it over at its next start.

    Attributes:
        address: IPv4 address.
        mask: Network mask.
        gateway: Address of the gateway.
        dhcp: Whether the address is asked for.
    """

    address: str
    mask: str = "255.255.255.0"
    gateway: str = "192.168.1.1"
    dhcp: bool = False


@dataclass(frozen=True, kw_only=True)
class GpsConditions:
    """Conditions on pulses and sentences (VLP-16 user manual, page 125).

    Attributes:
        pps_needs_valid: *Require GPS Receiver Valid* of the PPS qualifier.
        pps_needs_lock: *Require PPS Lock*.
        delay_s: *Delay*.
        nmea_needs_valid: *Require GPS Receiver Valid* of the GPS qualifier.
    """

    pps_needs_valid: bool = False
    pps_needs_lock: bool = False
    delay_s: int = 5
    nmea_needs_valid: bool = False


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """Settings of a sensor.

    Attributes:
        laser: Whether the lasers fire.
        returns: Return mode: ``strongest``, ``last`` or ``dual``.
        rpm: Rotation rate; 0: the motor stands still.
        fov_deg: First and last degree of the field of view.
        phase_lock: Whether the phase of the head is to be locked.
        phase_cdeg: Azimuth at the pulse then, in hundredths of a degree.
        gps: Conditions on pulses and sentences.
        host: Destination of packets.
        net: Network address.
    """

    laser: bool = True
    returns: str
    rpm: int
    fov_deg: tuple[int, int]
    phase_lock: bool = False
    phase_cdeg: int = 0
    gps: GpsConditions = GpsConditions()
    host: HostSetting
    net: NetSetting


@dataclass(frozen=True, kw_only=True)
class WebStatus:
    """State of a sensor.

    Attributes:
        phase_cdeg: Angle of the head in hundredths of a degree.
        is_locked: Whether the phase of the head is locked.
        pps: ``Absent``, ``Synchronizing``, ``Locked`` or ``Error``.
        position: Position of the receiver as text; empty without one.
        uptime_s: Time since the start.
        rpm: Rate of the head; None: that of the settings.
        is_shut_down: Whether the sensor has shut itself down to protect itself.
    """

    phase_cdeg: int
    is_locked: bool = False
    pps: str = "Absent"
    position: str = ""
    uptime_s: float = 0.0
    rpm: int | None = None
    is_shut_down: bool = False


def settings_document(settings: WebSettings) -> dict[str, Any]:
    """``/cgi/settings.json``."""
    start, end = settings.fov_deg
    host, net = settings.host, settings.net
    return {
        "laser": _on(settings.laser),
        "returns": _RETURNS[settings.returns],
        "rpm": settings.rpm,
        "fov": {"start": start, "end": end},
        "phaselock": {"enabled": _on(settings.phase_lock), "offset": str(settings.phase_cdeg)},
        # The names of the next two are those of their forms: no document of a real unit with them is known.
        "ppsctl": {"gpsrxv": _on(settings.gps.pps_needs_valid), "ppslck": _on(settings.gps.pps_needs_lock), "delay": str(settings.gps.delay_s)},
        "gpsctl": {"gpsrxv": _on(settings.gps.nmea_needs_valid)},
        "host": {"addr": host.address, "dport": str(host.data_port), "tport": str(host.position_port)},
        "net": {"addr": net.address, "mask": net.mask, "gateway": net.gateway, "dhcp": _on(net.dhcp)},
    }


def status_document(settings: WebSettings, status: WebStatus) -> dict[str, Any]:
    """``/cgi/status.json``: at standstill the motor counts as on and the lasers are disabled, after a protective shutdown both are disabled (samples of real units)."""
    stands = settings.rpm == _STOPPED_RPM or status.is_shut_down
    rpm = settings.rpm if status.rpm is None else status.rpm
    return {
        "gps": {"pps_state": status.pps, "position": status.position},
        "motor": {
            "state": "Disabled" if status.is_shut_down else "On",
            "rpm": 0 if status.is_shut_down else rpm,
            "lock": _on(status.is_locked),
            "phase": status.phase_cdeg,
        },
        "laser": {"state": "Disabled" if stands else _on(settings.laser)},
    }


def diagnostics_document(settings: WebSettings, status: WebStatus, seed: int) -> dict[str, Any]:
    """``/cgi/diag.json``: raw counts; boards warm up in some minutes, and take more current while the motor turns and the lasers fire.

    After a protective shutdown all counts of a real unit were 0.
    """
    fires = settings.laser and settings.rpm != _STOPPED_RPM
    warm = 1.0 - math.exp(-status.uptime_s / 300.0)
    work = 0.35 + 0.4 * (settings.rpm / 1200.0) + 0.25 * fires
    noise, lives = _noise(seed, int(status.uptime_s)), not status.is_shut_down

    def count(volts: float, spread: float = 2.0) -> int:
        return lives * min(max(round(volts / _VOLTS_PER_COUNT + spread * next(noise)), 0), _COUNT_MAX)

    # Voltages are those of the real unit's sample; how far boards warm up, and the share of motor and lasers in the current, are chosen to be plausible.
    top_c, bottom_c = 24.0 + 22.0 * warm * work, 24.0 + 18.0 * warm * work
    current_a = 0.25 + 0.35 * work
    return {
        "volt_temp": {
            "top": {
                "hv": count(3.21 if fires else 5.0),
                "ad_temp": count(0.735),
                "lm20_temp": count(_lm20_volts(top_c)),
                "pwr_5v": count(2.53),
                "pwr_2_5v": count(2.5),
                "pwr_3_3v": count(3.28),
                "pwr_5v_raw": count(2.67),
                "pwr_vccint": count(1.19),
            },
            "bot": {
                "i_out": count(2.5 + current_a / 10.0),
                "pwr_1_2v": count(1.2),
                "lm20_temp": count(_lm20_volts(bottom_c)),
                "pwr_5v": count(2.51),
                "pwr_2_5v": count(2.5),
                "pwr_3_3v": count(3.3),
                "pwr_v_in": count(12.0 / 11.0),
                "pwr_1_25v": 0,
            },
        },
        "vhv": lives * (412 + round(4 * next(noise))),
        "adc_nf": lives * (14 + round(next(noise))),
        "ixe": int(lives),
    }


def info_document(model: str, serial: str, mac: str) -> dict[str, Any]:
    """``/cgi/info.json``; ``mac`` as ``60:76:88:10:2f:6f``."""
    dashed = mac.replace(":", "-")
    return {"model": model, "serial": serial, "mac_addr": dashed, "factory_mac_addr": dashed}


def changed_by_form(path: str, form: Sequence[tuple[str, str]], settings: WebSettings, *, rates_rpm: range) -> WebSettings:
    """Settings after a form.

    Args:
        path: Path after ``/cgi/setting``: empty, ``/fov``, ``/host``, ``/net``, ``/phaselock``, ``/ppsctl`` or ``/gpsctl``.
        form: Keys and values.
        settings: Settings before.
        rates_rpm: Permitted rotation rates, beside 0.

    Raises:
        ValueError: a key is unknown or a value is wrong; all faults, joined by "; ".
    """
    given = dict(form)
    readers = _FORMS[path]
    require(
        (bool(given), f"keys must be given: {', '.join(readers)}"),
        *((key in readers, f"{key[:80]} is no key here ({', '.join(readers)})") for key in given),
    )
    faults: list[tuple[bool, str]] = []
    for key, text in given.items():
        try:
            settings = readers[key](settings, text.strip(), rates_rpm)
        except ValueError as error:
            faults.append((False, f"{key} {error}"))
    require(*faults)
    return settings


def forms_of(document: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Forms, with their paths after ``/cgi/setting``, that set all of a document of settings.

    Raises:
        ValueError: it is no such document.
    """
    try:
        tables = {path: document if not path else document[path.removeprefix("/")] for path in _FORMS}
        return [(path, [(key, str(tables[path][key])) for key in keys if key in tables[path]]) for path, keys in _FORMS.items()]
    except (KeyError, TypeError) as error:
        raise ValueError(f"settings must have every table of settings.json, got none of {error}") from error


def position_text(latitude_deg: float, longitude_deg: float) -> str:
    """Position as a status shows it: degrees and minutes."""
    return f"{_minutes(latitude_deg, 'NS')} {_minutes(longitude_deg, 'EW')}"


def _minutes(angle_deg: float, sides: str) -> str:
    degrees, minutes = divmod(abs(angle_deg) * 60.0, 60.0)
    return f"{int(degrees):02d} {minutes:05.2f}{sides[angle_deg < 0]}"


def _on(value: bool) -> str:  # noqa: FBT001 - a word for a truth value
    return "On" if value else "Off"


def _noise(seed: int, second: int) -> Iterator[float]:
    """Numbers of -1 to 1, others each second."""
    drawn = np.random.default_rng((seed, second))
    while True:
        yield float(drawn.uniform(-1.0, 1.0))


def _lm20_volts(temperature_c: float) -> float:
    """Voltage of the LM20 sensor at a temperature, by its data sheet's parabola (as in Autoware's monitor)."""
    return 1.8639 - 3.88e-6 * ((temperature_c + 1481.96) ** 2 - 2.1962e6)


def _switched(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError(f'must be on or off, got "{text[:80]}"')
    return _SWITCH[text.lower()]


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text[:10]) <= most:
        raise ValueError(f'must be {least} to {most}, got "{text[:80]}"')
    return int(text)


def _address(text: str) -> str:
    parts = text.split(".")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) <= 3 and int(part) <= 255 for part in parts):
        raise ValueError(f'must be an IPv4 address, got "{text[:80]}"')
    return ".".join(str(int(part)) for part in parts)


def _rpm(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    rpm = _number(text, 0, 99_999)
    if rpm != _STOPPED_RPM and rpm not in rates_rpm:
        raise ValueError(f"must be 0, or {rates_rpm.start} to {rates_rpm[-1]} in steps of {rates_rpm.step}, got {rpm}")
    return replace(settings, rpm=rpm)


def _returns(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    del rates_rpm
    if text.lower() not in _RETURNS:
        raise ValueError(f'must be {", ".join(_RETURNS.values())}, got "{text[:80]}"')
    return replace(settings, returns=text.lower())


def _laser(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    del rates_rpm
    return replace(settings, laser=_switched(text))


def _fov(place: int) -> Any:
    def read(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
        del rates_rpm
        fov = list(settings.fov_deg)
        fov[place] = _number(text, 0, 359)
        return replace(settings, fov_deg=(fov[0], fov[1]))

    return read


def _host(name: str) -> Any:
    def read(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
        del rates_rpm
        value: Any = _address(text) if name == "address" else _number(text, 1, 65_535)
        return replace(settings, host=replace(settings.host, **{name: value}))

    return read


def _net(name: str) -> Any:
    def read(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
        del rates_rpm
        value: Any = _switched(text) if name == "dhcp" else _address(text)
        return replace(settings, net=replace(settings.net, **{name: value}))

    return read


def _lock(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    del rates_rpm
    return replace(settings, phase_lock=_switched(text))


def _offset(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    del rates_rpm
    return replace(settings, phase_cdeg=_number(text, 0, 36_000))


def _shown_offset(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    """The field in degrees from which the sensor's page computes ``offset``, which it sends too: without effect (three clients' sources)."""
    del text, rates_rpm
    return settings


def _unused_switch(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    """A switch that clients send beside other keys: power saving outside the field of view, UDP checksums. Without effect."""
    del rates_rpm
    _switched(text)
    return settings


def _unused_mac(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
    """The MAC address, which clients send beside the network address. Without effect: it is the rig's."""
    del rates_rpm
    if not re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", text):
        raise ValueError(f'must be a MAC address, got "{text[:80]}"')
    return settings


def _condition(name: str) -> Any:
    def read(settings: WebSettings, text: str, rates_rpm: range) -> WebSettings:
        del rates_rpm
        value: Any = _number(text, 0, 65_535) if name == "delay_s" else _switched(text)
        return replace(settings, gps=replace(settings.gps, **{name: value}))

    return read


_FORMS: Mapping[str, Mapping[str, Any]] = {
    "": {"rpm": _rpm, "returns": _returns, "laser": _laser},
    "/fov": {"start": _fov(0), "end": _fov(1), "pwrsaven": _unused_switch},
    "/host": {"addr": _host("address"), "dport": _host("data_port"), "tport": _host("position_port"), "udpcs": _unused_switch},
    "/net": {"addr": _net("address"), "mask": _net("mask"), "gateway": _net("gateway"), "dhcp": _net("dhcp"), "mac_addr": _unused_mac},
    "/phaselock": {"enabled": _lock, "offset": _offset, "offsetInput": _shown_offset},
    "/ppsctl": {"gpsrxv": _condition("pps_needs_valid"), "ppslck": _condition("pps_needs_lock"), "delay": _condition("delay_s")},
    "/gpsctl": {"gpsrxv": _condition("nmea_needs_valid")},
}
FORM_PATHS = tuple(_FORMS)
"""Paths after ``/cgi/setting``."""
