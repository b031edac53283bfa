import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.conformance.checker import check
from hilsim.read.analysis.conformance.findings import Severity
from tests.unit.families.velodyne.conformance import streams as synthetic


@pytest.fixture(scope="session")
def streams():
    """The module that makes synthetic streams."""
    return synthetic


@pytest.fixture(scope="session")
def own_stream():
    """The module that makes streams by hilsim's own emulator."""
    from tests.unit.families.velodyne.conformance import own_stream  # noqa: PLC0415 - compiles kernels

    return own_stream


@pytest.fixture(scope="session")
def own(own_stream):
    """A second and a bit of hilsim's own VLP-16."""
    return list(own_stream.emulate(1_300_000_000, rotation_rate_rpm=600))


@pytest.fixture(scope="session")
def single(streams):
    """A faultless synthetic VLP-16, strongest return; do not write to its arrays."""
    return frozen(streams.vlp16())


@pytest.fixture(scope="session")
def dual(streams):
    """A faultless synthetic VLP-16, dual return; do not write to its arrays."""
    return frozen(streams.vlp16(1400, dual=True))


def frozen(stream):
    for array in (stream.data, stream.data_host_ns, stream.position, stream.position_host_ns):
        array.flags.writeable = False
    return stream


class Verdict:
    """Rule ids by severity."""

    def __init__(self, datagrams):
        self.result = check(datagrams)
        told = [*self.result.findings, *(finding for sensor in self.result.sensors for finding in sensor.findings)]
        self.findings = told
        self.errors = {finding.rule for finding in told if finding.severity is Severity.ERROR}
        self.warnings = {finding.rule for finding in told if finding.severity is Severity.WARNING}
        self.notes = {finding.rule for finding in told if finding.severity is Severity.NOTE}

    def first(self, rule):
        return next(finding for finding in self.findings if finding.rule == rule)


@pytest.fixture(scope="session")
def judge():
    """Check datagrams, or a stream's."""
    return lambda stream: Verdict(stream.datagrams() if hasattr(stream, "datagrams") else stream)


@pytest.fixture
def spoil():
    """A copy of a stream whose data packets a function has written to."""

    def apply(stream, change):
        data = stream.data.copy()
        change(data)
        return stream.change(data=data)

    return apply


@pytest.fixture
def datagrams_of(any_capture, own):
    """Datagrams of a capture by its name, or of hilsim's own stream as "own"."""
    return lambda name: list(own) if name == "own" else list(CaptureFile(any_capture(name)))


@pytest.fixture
def real_units(capture):
    """Skips where the captures of real units are not at hand."""
    capture("vlp16_strongest_gps.pcap")


@pytest.fixture
def mutate(datagrams_of):
    """Datagrams of a stream whose data (or position) payloads, as ``uint8[n, size]``, a function has written to."""

    def apply(name, change, size=1206):
        datagrams = datagrams_of(name)
        rows = [row for row, datagram in enumerate(datagrams) if len(datagram.payload) == size]
        payloads = np.frombuffer(b"".join(datagrams[row].payload for row in rows), dtype=np.uint8).reshape(-1, size).copy()
        changed = change(payloads)
        payloads = payloads if changed is None else changed
        for row, payload in zip(rows, payloads, strict=True):
            datagrams[row] = with_payload(datagrams[row], payload.tobytes())
        return datagrams

    return apply


def with_payload(datagram, payload):
    """With another payload; without headers, as a socket would give it, where their length or a position packet's checksum would tell of the change."""
    keeps_link = len(payload) == len(datagram.payload) == 1206
    changed = {"payload": payload} | ({} if keeps_link else {"link": None})
    return type(datagram)(**{name: getattr(datagram, name) for name in datagram.__slots__} | changed)
