"""Captures for the replay benchmark: VLP-16s in a room, recorded by hilsim itself, one file a sensor, with what each file holds."""

import hashlib
import random
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np

from hilsim.capture.pcap import CaptureFile, PcapWriter

FIRST_SOURCE = IPv4Address("192.168.1.201")
PERIOD_US = 1327.104  # VLP-16: 24 firing sequences of 55.296 us a data packet
SCENE = """
name = "replay-bench"
[[scene.box]]
position_m = [10.5, 0.0, 2.0]
size_m = [1.0, 14.0, 6.0]
[[scene.box]]
position_m = [-10.5, 0.0, 2.0]
size_m = [1.0, 14.0, 6.0]
[[scene.box]]
position_m = [0.0, 6.5, 2.0]
size_m = [22.0, 1.0, 6.0]
[[scene.box]]
position_m = [0.0, -6.5, 2.0]
size_m = [22.0, 1.0, 6.0]
[[scene.box]]
position_m = [0.0, 0.0, -1.5]
size_m = [22.0, 14.0, 1.0]
"""
SENSOR = """
[[sensor]]
name = "lidar{number}"
start_delay_us = {delay_us}
gps = {{ latitude_deg = 36.8, longitude_deg = -2.4 }}
[sensor.network]
source = "{source}"
destination = "{destination}"
destination_mac = "{mac}"
"""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One capture file and its packets in file order.

    Attributes:
        path: Nanosecond PCAP file.
        source: Address its packets come from, as a number.
        stamp_ns: ``int64[n]``, capture times, UTC.
        port: ``int64[n]``, destination ports.
        digest: ``int64[n]``, of the payloads; no two are equal.
    """

    path: Path
    source: int
    stamp_ns: np.ndarray
    port: np.ndarray
    digest: np.ndarray


def digest(payload):
    """A number that tells payloads apart."""
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "little", signed=True)


def record_streams(hilsim, directory, sensors, seconds, destination, mac):
    """Record ``sensors`` VLP-16s for ``seconds`` and cut the recording into one file a sensor.

    Their phases against each other are random, as of real units that are not synchronised.
    """
    phases = random.Random(1)
    text = SCENE + "".join(
        SENSOR.format(number=number, delay_us=round(phases.uniform(0, PERIOD_US), 1), source=FIRST_SOURCE + number, destination=destination, mac=mac)
        for number in range(sensors)
    )
    rig = directory / "rig.toml"
    rig.write_text(text, encoding="utf-8")
    recording = directory / "all.pcap"
    subprocess.run([*hilsim, "record", rig, "-o", recording, "--duration-s", str(seconds)], check=True, stdout=subprocess.DEVNULL)
    streams = cut(recording, directory)
    recording.unlink()
    return streams


def cut(recording, directory):
    """One file and one ``Stream`` for each source address of a recording, in the order of the addresses."""
    held = {}
    for datagram in CaptureFile(recording):
        held.setdefault(datagram.source, []).append(datagram)
    return [write_stream(directory / f"{source}.pcap", held[source]) for source in sorted(held, key=IPv4Address)]


def write_stream(path, datagrams):
    """Write frames as they were recorded."""
    with PcapWriter(path) as writer:
        for datagram in datagrams:
            writer.write(datagram.host_stamp_ns, datagram.link + datagram.payload)
    stream = Stream(
        path=path,
        source=int(IPv4Address(datagrams[0].source)),
        stamp_ns=np.array([datagram.host_stamp_ns for datagram in datagrams]),
        port=np.array([datagram.destination_port for datagram in datagrams]),
        digest=np.array([digest(datagram.payload) for datagram in datagrams]),
    )
    if np.unique(stream.digest).size != stream.digest.size:
        raise AssertionError(f"{path}: two packets have the same payload and could not be distinguished")
    return stream
