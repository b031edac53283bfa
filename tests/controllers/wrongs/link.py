"""What is wrong with the conversation: order, frames, answers, forwarding."""

from pymavlink.dialects.v20 import common

from hilsim_flight_controller.wire import Writer
from tests.controllers.wrongs.registry import wrong


@wrong("sensors before the heartbeat", "before_heartbeat", controller={"boot_us": 1_000_000})
def _(bridge):
    bridge.may_sense = lambda now_us: now_us >= bridge.due_us


@wrong("sensors without the HIL flag", "hil_flag", controller={"hil": False})
def _(bridge):
    bridge.serial = False


@wrong("the true state on a serial line", "quaternion", run_s=1.2)
def _(bridge):
    send = bridge.send_sensor

    def both(now_us, fields):
        send(now_us, fields)
        bridge.send(common.MAVLink_hil_state_quaternion_message(now_us, (1.0, 0.0, 0.0, 0.0), *[0] * 14))

    bridge.send_sensor = both


def _heartbeat(name, **changes):
    @wrong(name, "heartbeat", run_s=2.2)
    def spoil(bridge):
        def other():
            beat = {"type": 0, "autopilot": 8, "base_mode": 0, "custom_mode": 0, "system_status": 4, "mavlink_version": 3}
            return common.MAVLink_heartbeat_message(**beat | changes)

        bridge.on_heartbeat = other


_heartbeat("a heartbeat cut short", mavlink_version=0)
_heartbeat("a heartbeat of an autopilot", autopilot=common.MAV_AUTOPILOT_PX4)


@wrong("bytes between frames", "garbage", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw + b"\x00\x55")


@wrong("three carriage returns", "garbage", "shell", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw + b"\r\r\r")


@wrong("a wrong checksum", "checksum", "garbage", "sequence", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw[:-1] + bytes([raw[-1] ^ 1]) if bridge.frames == 50 else raw)


@wrong("frames without numbers", "sequence", run_s=1.2)
def _(bridge):
    send = bridge.send

    def again(message):
        bridge.writer.mav.seq = 7
        send(message)

    bridge.send = again


@wrong("no answer to TIMESYNC", "timesync")
def _(bridge):
    bridge.on_timesync = lambda _now_us, _message: None


@wrong("another's TIMESYNC", "timesync")
def _(bridge):
    bridge.on_timesync = lambda now_us, message: common.MAVLink_timesync_message(now_us * 1000 + 1, message.ts1 + 1)


def _forwarding(name, change, *more):
    @wrong(name, "forwarded", *more, run_s=1.2)
    def spoil(bridge):
        forward = bridge.from_ground
        seen = []

        def other(raw):
            seen.append(raw)
            for one in change(seen):
                forward(one)

        bridge.from_ground = other


_forwarding(
    "a signature cut off",
    lambda seen: [seen[-1] if not seen[-1][2] & 1 else bytes([seen[-1][0], seen[-1][1], 0]) + seen[-1][3:-13]],
    "checksum",
    "garbage",
)
_forwarding("unknown frames dropped", lambda seen: [] if seen[-1][9] else [seen[-1]])
_forwarding("zeros filled up", lambda seen: [_filled(seen[-1])])
_forwarding("frames out of order", lambda seen: [seen[-1], seen[-2]] if len(seen) % 2 == 0 else [])
_forwarding("frames twice", lambda seen: [seen[-1], seen[-1]])


def _filled(raw):
    """A COMMAND_LONG with its zeros put back, its checksum made anew; others as they are."""
    if raw[2] & 1 or raw[9]:
        return raw
    writer = Writer(255, 190)
    writer.mav.seq = raw[4]
    payload = raw[10:-2].ljust(33, b"\0")
    return writer.frame(76, payload, common.mavlink_map[76].crc_extra)
