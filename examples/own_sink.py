"""A sink of your own: what a rig sends goes wherever you write it, here to a file of JSON lines and to a UDP port.

A sink is whatever takes packets one by one. Nothing here runs against a clock, so it may be as slow as it likes.
"""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Protocol, TextIO

import hilsim


class Sink(Protocol):
    """Takes packets."""

    def write(self, packet: hilsim.Packet) -> None:
        """Take the next one."""


class JsonLines:
    """A line a packet, with its payload in hexadecimal digits."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, packet: hilsim.Packet) -> None:
        """Write its line."""
        line = {"time_ns": packet.time_ns, "sensor": packet.sensor, "stream": packet.stream, "payload": packet.payload.hex()}
        self._file.write(json.dumps(line) + "\n")


class Forward:
    """Sends payloads to an address, and counts them by stream."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sent: Counter[str] = Counter()
        self._socket, self._address = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), address

    def write(self, packet: hilsim.Packet) -> None:
        """Send it."""
        self._socket.sendto(packet.payload, self._address)
        self.sent[packet.stream] += 1


def main() -> None:
    """Hand a tenth of a second of the demo rig to both."""
    path = Path("packets.jsonl")
    with path.open("w", encoding="utf-8") as file:
        forward = Forward(("127.0.0.1", 9))
        sinks: list[Sink] = [JsonLines(file), forward]
        for packet in hilsim.Emulator("demo").packets(0.0, 0.1):
            for sink in sinks:
                sink.write(packet)
    print(f"{path}: {path.stat().st_size} bytes; sent to port 9: {', '.join(f'{count} {name}' for name, count in forward.sent.items())} packets")


if __name__ == "__main__":
    main()
