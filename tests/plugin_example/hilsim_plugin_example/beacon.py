"""A part of a rig: beacons, each of which sends its name and the number of the second by UDP, once a second."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from hilsim.plugins import FlowKey, Flows, Label, Losses, Needs, Part, PartKind, PlainFlow, Reading, RigClock, RigContext, RigSpec, counter, require

SECOND_NS, AHEAD_NS = 1_000_000_000, 20_000_000


@dataclass(frozen=True, kw_only=True)
class BeaconSpec:
    """One beacon.

    Attributes:
        name: Name in metrics and messages.
        source: IPv4 address of this host.
        destination: Address or host name.
        port: UDP port that it sends to.
    """

    name: str
    source: str = "127.0.0.1"
    destination: str = "127.0.0.1"
    port: int = 7777

    def __post_init__(self) -> None:
        require((1 <= len(self.name) <= 80, f'name must be 1 to 80 characters, got "{self.name}"'))


@dataclass(frozen=True, kw_only=True)
class BeaconReading:
    """One beacon."""

    name: Annotated[str, Label("beacon")]
    messages: Annotated[int, counter("hilsim_beacon_messages_total", "Messages of a beacon queued for sending")]
    late_messages: Annotated[int, counter("hilsim_beacon_late_messages_total", "Messages of a beacon that were made too late to be sent")]


class BeaconKind(PartKind[BeaconSpec]):
    """Beacons that say by UDP once a second that they are there."""

    table: ClassVar[str] = "beacon"
    spec: ClassVar[type[BeaconSpec]] = BeaconSpec
    destination: ClassVar[tuple[str, ...]] = ("destination",)
    destination_port: ClassVar[tuple[str, ...]] = ("port",)
    faults: ClassVar[Mapping[str, str]] = {"beacon_late": "Messages of a beacon are missing"}
    reading: ClassVar[type[BeaconReading]] = BeaconReading
    losses: ClassVar[tuple[Losses, ...]] = (Losses("beacon_late", "messages", {"late_messages": "made too late"}),)

    def part(self, context: RigContext) -> "Beacons":
        return Beacons(context)

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        names = [beacon.name for beacon in rig.part("beacon")]
        yield len({*names}) == len(names), f"names of beacons must differ, got {', '.join(names)}"


class Beacons(Part):
    """All beacons of a rig, and the thread that makes their messages."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._beacons: tuple[BeaconSpec, ...] = context.rig.spec.part("beacon")
        self._flows: list[PlainFlow] = []
        self._messages, self._late = [0] * len(self._beacons), [0] * len(self._beacons)
        self._stopping, self._thread = threading.Event(), threading.Thread(target=self._run, name="beacons", daemon=True)

    def needs(self) -> Needs:
        return Needs(flows=len(self._beacons), capacity_bytes=142, packet_rate_hz=len(self._beacons))

    def open(self, flows: Flows) -> None:
        for beacon in self._beacons:
            addresses = FlowKey(beacon.source, beacon.port, beacon.destination, beacon.port)
            self._flows.append(PlainFlow(flows, f"{beacon.name}/beacon", addresses, packet_rate_hz=1.0))

    def warm(self) -> None:
        PlainFlow.warm()

    rehearse = warm

    def start(self, clock: RigClock) -> None:
        for flow in self._flows:
            flow.release()
        self._epoch_ns = clock.epoch_ns
        self._thread.start()

    def _run(self) -> None:
        due_ns, number = self._epoch_ns, 0
        while not self._stopping.wait(max(due_ns + SECOND_NS - AHEAD_NS - time.monotonic_ns(), 0) / 1e9):
            due_ns, number = due_ns + SECOND_NS, number + 1
            for place, (beacon, flow) in enumerate(zip(self._beacons, self._flows, strict=True)):
                is_made = time.monotonic_ns() < due_ns and flow.send(f"{beacon.name} {number}".encode(), due_ns)
                (self._messages if is_made else self._late)[place] += 1

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def summary(self) -> str:
        return f"{len(self._beacons)} beacon(s)"

    def lines(self) -> Iterator[tuple[str, str]]:
        yield from ((beacon.name, f"-> {beacon.destination}:{beacon.port}, once a second") for beacon in self._beacons)

    def check_notes(self) -> Iterator[str]:
        yield from (f"{beacon.name} sends {len(beacon.name) + 2} bytes and more" for beacon in self._beacons)

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:  # noqa: ARG002 - all values are now's
        rows = zip(self._beacons, self._messages, self._late, strict=True)
        found = tuple(BeaconReading(name=beacon.name, messages=messages, late_messages=late) for beacon, messages, late in rows)
        return replace(reading, parts={**reading.parts, "beacon": found})


BEACON = BeaconKind()
