import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.conformance.checker import check
from hilsim.conformance.findings import Severity


@pytest.fixture(scope="session")
def streams():
    """The module that makes synthetic streams."""
    spec = importlib.util.spec_from_file_location("conformance_streams", Path(__file__).parent / "streams.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["conformance_streams"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["conformance_streams"]


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
def mutate(capture):
    """Datagrams of a real capture whose data (or position) payloads, as ``uint8[n, size]``, a function has written to."""

    def apply(name, change, size=1206):
        datagrams = list(CaptureFile(capture(name)))
        rows = [row for row, datagram in enumerate(datagrams) if len(datagram.payload) == size]
        payloads = np.frombuffer(b"".join(datagrams[row].payload for row in rows), dtype=np.uint8).reshape(-1, size).copy()
        changed = change(payloads)
        payloads = payloads if changed is None else changed
        for row, payload in zip(rows, payloads, strict=True):
            datagrams[row] = with_payload(datagrams[row], payload.tobytes())
        return datagrams

    return apply


def with_payload(datagram, payload):
    """As a socket would give it: without headers, whose checksum would tell of the change."""
    return type(datagram)(**{name: getattr(datagram, name) for name in datagram.__slots__} | {"payload": payload, "link": None})
