"""Reasons that no flight controller was found, from the received bytes."""

from hilsim.parts.vehicle.diagnosis.probe_result import Link, ProbeResult
from hilsim.telemetry.findings import Finding, bad
from hilsim.transmit.links.line import LineKind

_CABLE = "the cable: it must carry data (many USB cables only charge), and the board must have power; ls /dev/serial/by-id must name it when it is plugged in"
_WIRES = "the wires: TX to RX both ways, a common ground, 3.3 V levels"
_BAUD = "the baud rate of both ends: PX4's TELEM 1 begins with 57600, TELEM 2 with 921600 (SER_TEL1_BAUD, SER_TEL2_BAUD); try hilsim doctor --link {path} --baud 57600"
_UART_MAVLINK = "MAVLink on that port: MAV_0_CONFIG = 101 (TELEM 1) or MAV_1_CONFIG = 102 (TELEM 2), set through USB; restart the controller"
_USB_MAVLINK = "MAVLink on USB: wait 10 s after plugging in; newer PX4 with SYS_USB_AUTO = 2; unplug the board and plug it in again if there is none"
_PROGRAMS = "other programs: end QGroundControl and whatever else opens the port by itself (systemctl stop ModemManager)"
_TEXT_SHARE = 0.9


def silence_finding(link: Link, result: ProbeResult) -> Finding:
    """Finding with the probable causes, in order of checking."""
    if result.has_echo:
        fact = "only hilsim's own heartbeats are received: TX and RX are connected, or the other end echoes"
        return _bad(fact, ["disconnect TX from RX", "name the controller's MAVLink port, not a console"])
    if result.frames:
        return _bad(
            f"{result.frames} MAVLink frames in {result.waited_s:.1f} s, but no flight controller's heartbeat{_senders(result)}", _behind(link)
        )
    if result.received_bytes and _is_text(result.sample):
        line = result.sample.decode("ascii", errors="replace").split("\n")[0].strip()[:60]
        return _bad(
            f'{result.received_bytes} bytes of plain text were received ("{line}"): a console or a sensor, not MAVLink',
            ["name the port of the controller that speaks MAVLink: its USB, TELEM 1 or TELEM 2, not its debug console"],
        )
    if result.received_bytes:
        return _bad(f"{result.received_bytes} bytes in {result.waited_s:.1f} s, but no MAVLink frame in them", _garbled(link))
    return _bad(f"no byte in {result.waited_s:.1f} s, although heartbeats were sent each second", _silent(link))


def _bad(fact: str, steps: list[str]) -> Finding:
    advice = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)) if len(steps) > 1 else steps[0]
    return bad("controller", fact, advice)


def _silent(link: Link) -> list[str]:
    if link.line.kind is LineKind.NETWORK:
        return ["start PX4's simulation for an external simulator (make px4_sitl none_iris)"]
    if link.line.kind is LineKind.USB:
        return [_CABLE, _USB_MAVLINK, _PROGRAMS]
    return [_CABLE, _WIRES, _BAUD.format(path=link.path), _UART_MAVLINK, _PROGRAMS]


def _garbled(link: Link) -> list[str]:
    if link.line.kind is LineKind.UART:
        return [_BAUD.format(path=link.path), _WIRES, "what is at the other end: a GPS or a lidar speaks no MAVLink"]
    return ["what is at the other end: a GPS, a lidar or a board in its bootloader speaks no MAVLink", _PROGRAMS]


def _behind(link: Link) -> list[str]:
    return [
        "name the controller's own port: a gimbal, camera or companion computer sends here",
        "see that PX4 has started (its sound, its lights), and that its microSD card is in",
        *([_UART_MAVLINK] if link.line.kind is LineKind.UART else []),
    ]


def _senders(result: ProbeResult) -> str:
    senders = ", ".join(f"system {beat.system} component {beat.component}" for beat in result.others)
    return f", only {senders}" if senders else ""


def _is_text(sample: bytes) -> bool:
    printable = sum(32 <= byte < 127 or byte in (9, 10, 13, 27) for byte in sample)
    return printable >= _TEXT_SHARE * len(sample)
