"""Third-party software on replayed captures: it decodes live what it decodes from the file."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from velodyne_decoder import Config, Model, read_pcap

from hilsim.capture.pcap import PcapWriter
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE
from hilsim.protocols.ethernet import HEADER_SIZE, build_framing, write_headers
from hilsim.protocols.flow_key import FlowKey
from tests.system.replaying import Arrivals, replay, rerouted

pytestmark = pytest.mark.system

LISTENER = Path(__file__).parent / "cepton_listener.py"
MODELS = {
    "vlp16_strongest_gps.pcap": Model.VLP16,
    "vlp16_dual.pcap": Model.VLP16,
    "vlp16_strongest_1200rpm.pcap": Model.HDL32E,  # what its product byte says; the decoder refuses any other, and both sides are read the same
    "hdl32e_strongest.pcap": Model.HDL32E,
    "vlp32c_strongest_fov.pcap": Model.VLP32C,
}


def decoded(path, model):
    scans = read_pcap(str(path), Config(model=model, min_range=0.0, max_range=250.0), as_pcl_structs=True)
    return np.concatenate([points for _, points in scans])


def as_capture(datagrams, path):
    """What arrived, as a capture with a sensor's headers."""
    header = build_framing(
        VELODYNE_DATA_STYLE,
        FlowKey("192.168.1.201", 2368, "255.255.255.255", 2368),
        source_mac="60:76:88:10:00:01",
        destination_mac="ff:ff:ff:ff:ff:ff",
    )
    with PcapWriter(path) as writer:
        for datagram in datagrams:
            frame = np.zeros(HEADER_SIZE + len(datagram.payload), np.uint8)
            frame[HEADER_SIZE:] = np.frombuffer(datagram.payload, np.uint8)
            write_headers(header.template, 0, False, frame, len(datagram.payload))  # noqa: FBT003 - a kernel's positional scalar
            writer.write(datagram.host_stamp_ns, frame.tobytes())
    return path


@pytest.mark.parametrize("name", [*list(MODELS)[:2], *(pytest.param(name, marks=pytest.mark.extended) for name in list(MODELS)[2:])])
def test_velodyne_decoder_reads_the_same_points_from_a_re_timed_replay_as_from_the_file(capture, tmp_path, name):
    path = capture(name)
    heard = Arrivals(1)
    try:
        replay(path, *rerouted((2368,), heard.ports))
    finally:
        arrived = heard.close()
    before, after = decoded(path, MODELS[name]), decoded(as_capture(arrived, tmp_path / "arrived.pcap"), MODELS[name])
    assert before.size == after.size > 50_000
    for field in ("x", "y", "z", "intensity", "ring"):
        np.testing.assert_array_equal(before[field], after[field], err_msg=field)


def counts_of(text):
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture
def vendor_sdk():
    """Start the vendor's SDK as a process; skips where its library, a closed binary for x86-64 Linux, cannot be loaded."""
    probe = subprocess.run([sys.executable, "-c", "from cepton_sdk2 import c"], check=False, capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"the vendor's library does not load here: {probe.stderr.strip().splitlines()[-1]}")
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, str(LISTENER), *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def await_bound(port):
    """Until some socket is bound to a UDP port."""
    deadline = time.monotonic() + 30
    while f":{port:04X} " not in Path("/proc/net/udp").read_text(encoding="ascii"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_vendors_sdk_decodes_as_many_points_live_as_from_the_file(capture, vendor_sdk):
    path = capture("cepton_hr80_two_sensors.pcap")
    from_file = counts_of(vendor_sdk("file", path).communicate(timeout=60)[0])
    heard = Arrivals(1)
    port = heard.ports[0]
    heard.close()  # a port that is free, for the SDK to bind
    live = vendor_sdk("live", port)
    while live.stdout.readline() != "listening\n":
        assert live.poll() is None
    await_bound(port)
    # Three times slower than recorded: the library's receive buffer holds a tenth of a second, which a busy machine can take from it.
    replay(path, "--interval-scale", "3", *rerouted((8808,), (port,)))
    counts = counts_of(live.communicate(timeout=60)[0])
    assert from_file == {"192.168.32.87": 79_616, "192.168.48.101": 73_728}
    assert counts == {address.replace("192.168", "127.0"): points for address, points in from_file.items()}
