"""A recording to a driver as if it were now: real time, with new stamps, twice as slow.

Here the driver is a socket. It sees what a real sensor would send: one packet each 1.3 ms (2.7 ms at half the speed), whose stamps are the time of the day
and not of the recording. `hilsim.replay_capture` takes any capture, also of a real sensor.
"""

import socket
from datetime import UTC, datetime
from pathlib import Path

import hilsim

STAMP = slice(1200, 1204)  # of a Velodyne data packet: microseconds past the hour


def stamp_s(payload: bytes) -> float:
    """Seconds past the hour that a data packet says."""
    return int.from_bytes(payload[STAMP], "little") / 1e6


def main() -> None:
    """Record a little of the demo street, and replay it."""
    path = Path("street.pcap")
    hilsim.record("demo", path, duration_s=0.3)
    recorded = [packet.payload for packet in hilsim.read_capture(path) if packet.stream == "data"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver:
        driver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)  # it reads only when all has been sent
        driver.bind(("127.0.0.1", 0))
        port = driver.getsockname()[1]
        report = hilsim.replay_capture(path, to=f"127.0.0.1:{port}", flows=[">:2368"], interval_scale=2.0)
        received = driver.recv(2000)
    now = datetime.now(UTC)
    print(f"sent {report.sent_packets} of {len(recorded)} packets, {report.late_packets} of them late, {report.dropped_packets} left out")
    print(f"the first was recorded with a stamp of {stamp_s(recorded[0]):.6f} s past the hour and arrived with {stamp_s(received):.6f} s")
    print(f"it is {now.minute * 60 + now.second} s past the hour now; all bytes but the stamp are the same: {received[:1200] == recorded[0][:1200]}")


if __name__ == "__main__":
    main()
