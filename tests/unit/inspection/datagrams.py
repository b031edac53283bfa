"""Datagrams that an inspection reads."""

from hilsim.capture.datagram import CapturedDatagram

START_NS = 1_700_000_000_000_000_000


def datagram(payload, *, at_ns=START_NS, source="192.168.1.201", port=2368, frame=1):
    return CapturedDatagram(
        host_stamp_ns=at_ns,
        source=source,
        source_port=port,
        destination="255.255.255.255",
        destination_port=port,
        payload=payload,
        link=None,
        is_ethernet=False,
        frame=frame,
    )
