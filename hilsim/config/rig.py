"""The rig file of one daemon, as frozen specifications."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, ClassVar, Literal

from hilsim.capture.sinks.pcap import RecordSpec
from hilsim.config.changes import Changes
from hilsim.config.lidar_settings import sensor_lidar
from hilsim.config.parse import collect_faults
from hilsim.config.part_tables import kinds_in, own_kinds, part_kind, with_tables
from hilsim.config.script import Script
from hilsim.config.sdf_mounts import mounted
from hilsim.config.sinks import SinkSetting, sink_settings
from hilsim.config.tables.classes import ClassSpec, class_rules
from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.config.tables.platform import PlatformSpec
from hilsim.config.tables.render import RenderSpec
from hilsim.config.tables.sensor import SensorSpec
from hilsim.config.toml_file import rig_table
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError, require
from hilsim.faults.catalogue import Place
from hilsim.faults.specs import AnyFault, FaultSpec, fault_rules, faults_on
from hilsim.limits import SENSORS
from hilsim.registry import OWN_PARTS
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.transmit.hosts import is_ipv4
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.specs import TransmitSpec
from hilsim.world.scene.specs import SceneSpec

CaptureStamps = Literal["ns", "us"]

AUTO_LEAD_MS = 0.0
"""The lead is chosen by hilsim."""


@dataclass(frozen=True, kw_only=True)
class ControlSpec:
    """Command interfaces of a running daemon.

    Attributes:
        socket: Path of a Unix socket for ``hilsim control``, relative to the rig; empty: none. Only its owner may use it.
        listen: ``ADDRESS:PORT`` for commands by UDP (``hilsim control udp:ADDRESS:PORT``), one datagram each, from any user of the host; empty: none.
        peers: IPv4 addresses whose datagrams are accepted; empty: any, which is permitted only for a loopback address. A sender's address can be forged.
        http: ``ADDRESS:PORT`` for requests over HTTP and WebSocket (``hilsim control http://ADDRESS:PORT``), a loopback address; empty: none.
        token_file: File with the token that requests over HTTP must have, relative to the rig. The daemon makes it with a new token where there is none.
    """

    socket: str = ""
    listen: str = ""
    peers: tuple[str, ...] = ()
    http: str = ""
    token_file: str = "control.token"  # noqa: S105 - a name of a file

    def __post_init__(self) -> None:
        host, _, port = self.listen.rpartition(":")
        is_endpoint = is_ipv4(host) and port.isascii() and port.isdigit() and int(port) <= 65_535
        require(
            (len(self.socket.encode()) <= 100, f'socket must be at most 100 bytes, got "{self.socket}"'),
            (not self.listen or is_endpoint, f'listen must be ADDRESS:PORT like 127.0.0.1:9465, got "{self.listen}"'),
            (
                not is_endpoint or IPv4Address(host).is_loopback or bool(self.peers),
                f"peers must be given where listen is no loopback address, got none for {self.listen}",
            ),
            *((is_ipv4(peer), f'peers must be IPv4 addresses, got "{peer}"') for peer in self.peers),
            (not self.http or _is_loopback_port(self.http), f'http must be a loopback ADDRESS:PORT like 127.0.0.1:9466, got "{self.http}"'),
            (not self.http or bool(self.token_file), "token_file must be given where http is, got none"),
        )

    @property
    def endpoint(self) -> tuple[str, int]:
        """Address and port of ``listen``."""
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    @property
    def http_endpoint(self) -> tuple[str, int]:
        """Address (without brackets) and port of ``http``."""
        host, _, port = self.http.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def takes_changes(self) -> bool:
        """Whether requests can change the rig while it runs."""
        return bool(self.socket or self.http)


def _is_loopback_port(text: str) -> bool:
    """Whether a text is ``127.0.0.1:9466`` or ``[::1]:9466``, with any loopback address and port."""
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = IPv6Address(host[1:-1]) if is_bracketed else IPv4Address(host)
    except ValueError:
        return False
    return address.is_loopback and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535


@dataclass(frozen=True, kw_only=True)
class RigSpec:
    """Contents of a rig file.

    Attributes:
        name: Name in messages and logs.
        seed: Seed of all random numbers, 0 to 2^63 - 1.
        lead_ms: Time before its deadline at which a packet is rendered, 1 to 1000; pose-to-wire latency is slightly more. 0: 40, and up to 60 if packets are late; with a
            vehicle 2.5, and up to 12; so also with ``external`` poses that are followed live.
        scene: Scene of the sensors.
        weather: Weather of the scene.
        classes: Classes by label, for labelled data sets. If there are any, each label of the scene's objects but 0 must have one; the demo street has its own.
        platform: Carrier of the sensors.
        sensor: The lidars.
        render: Settings of rendering.
        transmit: Settings of sending.
        metrics: Settings of the metrics server.
        record: Recording of sent packets.
        sink: Further sinks of sent packets, from plug-ins. Each has a ``kind``, a ``name`` (by default its kind), and the keys of its kind.
        control: Command interfaces of the running daemon.
        fault: Faults on command, of the kinds and keys in the reference of faults.
        parts: Tables of parts by their names, none of them empty (``config.part_kind``).
    """

    name: str
    seed: int = 0
    lead_ms: float = AUTO_LEAD_MS
    scene: SceneSpec = field(default_factory=SceneSpec)
    weather: WeatherSpec = field(default_factory=WeatherSpec)
    classes: dict[str, ClassSpec] = field(default_factory=dict)
    platform: PlatformSpec = field(default_factory=PlatformSpec)
    sensor: tuple[SensorSpec, ...] = ()
    render: RenderSpec = field(default_factory=RenderSpec)
    transmit: TransmitSpec = field(default_factory=TransmitSpec)
    metrics: MetricsServerSpec = field(default_factory=MetricsServerSpec)
    record: RecordSpec = field(default_factory=RecordSpec)
    sink: tuple[dict[str, Any], ...] = ()
    control: ControlSpec = field(default_factory=ControlSpec)
    fault: tuple[AnyFault, ...] = ()
    parts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    moved_keys: ClassVar[Mapping[str, str]] = {"carrier": "[platform]"}

    def __post_init__(self) -> None:
        repeated = sorted(name for name, count in Counter(self.streams).items() if count > 1)
        require(
            SENSORS.rule(len(self.streams)),
            *self._content_rules(),
            (
                self.platform.kind not in OWN_PARTS or bool(self.part(self.platform.kind)),
                f'platform.kind "{self.platform.kind}" needs {"an" if self.platform.kind[0] in "aeiou" else "a"} [{self.platform.kind}], got none',
            ),
            (not repeated, f"names of sensors and replays must differ, got {', '.join(repeated)} more than once"),
            (0 <= self.seed < 2**63, f"seed must be 0 to 2^63 - 1, got {self.seed}"),
            (
                self.platform.kind != "street" or self.scene.generator == "street",
                f'platform.kind "street" needs scene.generator "street", got "{self.scene.generator}"',
            ),
            (
                self.platform.kind != "background" or bool(self.scene.background),
                'platform.kind "background" needs a [[scene.background]], got none',
            ),
            (
                self.lead_ms == AUTO_LEAD_MS or 1.0 <= self.lead_ms <= 1000.0,
                f"lead_ms must be 1 to 1000, or 0 to follow the rig, got {self.lead_ms}",
            ),
            *class_rules(self.classes),
            *(rule for table in self.parts for rule in part_kind(table).rules(self)),
            *self._port_rules(),
            *self._interference_rules(),
            *fault_rules(self.fault, [sensor.name for sensor in self.sensor], self.senders, self.befallen),
        )

    @property
    def serial_devices(self) -> tuple[SerialSpec, ...]:
        """All devices with a serial port of their own: no two may share a port."""
        return tuple(each for specs in self.parts.values() for each in specs if isinstance(each, SerialSpec))

    @property
    def senders(self) -> dict[str, bool]:
        """Names of all that sends datagrams, and whether it makes whole frames."""
        parts = {part_kind(table).name(spec): getattr(spec, "mode", "") == "ethernet" for table, specs in self.parts.items() for spec in specs}
        return {sensor.name: sensor.network.mode == "ethernet" for sensor in self.sensor} | parts

    @property
    def befallen(self) -> list[tuple[Place, str]]:
        """Places and names of what faults can befall beside its sensors."""
        return [each for table, specs in self.parts.items() for each in part_kind(table).befallen(specs)]

    def part(self, table: str) -> tuple[Any, ...]:
        """Tables of parts of a name."""
        return self.parts.get(table, ())

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of its sensors and of what stands for sensors, in the order in which a recording numbers them."""
        tables = (each for table, specs in self.parts.items() if part_kind(table).is_sensor for each in specs)
        return tuple(each.name for each in (*self.sensor, *tables))

    def _content_rules(self) -> Iterator[tuple[bool, str]]:
        """Check that the rig has something that sends; parts that move others do not."""
        if self.sensor or not all(part_kind(table).moves for table in self.parts):
            return
        kinds = [kind for kind in dict.fromkeys((*own_kinds(), *map(part_kind, self.parts))) if not kind.moves]
        *others, last = ("sensor", *(kind.table for kind in kinds if not kind.carries))
        carriers = ", ".join(kind.table for kind in kinds if kind.carries)
        yield False, f"{', '.join(others)} or {last} must have at least one entry, or {carriers} be given"

    def _interference_rules(self) -> Iterator[tuple[bool, str]]:
        """Check that there is another sensor whose pulses can reach one that asks for them."""
        for number, sensor in enumerate(self.sensor):
            yield not sensor.interference or len(self.sensor) > 1, f"sensor[{number}].interference must be false in a rig of one sensor, got true"

    def _port_rules(self) -> Iterator[tuple[bool, str]]:
        """Check that serial ports have one device each."""
        ports = [part_kind(table).serial_port(spec) for table, specs in self.parts.items() for spec in specs]
        repeated = sorted(port for port, count in Counter(ports).items() if port and count > 1)
        yield not repeated, f"port of serial devices and controller must differ, got {', '.join(repeated)} more than once"


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A checked rig file with its profiles.

    Attributes:
        path: Path of the rig file.
        spec: Contents, with ``record.stamps`` resolved.
        lidars: Settings of the sensors, in the rig's order.
        settings: What parts' tables need from other files, by the names of the tables, an entry a table (``PartKind.setting``).
        sinks: Sinks of ``spec.sink``.
        hosts: Host names of destinations and the addresses that replace them (``config.hosts``).
        sources: Sensors whose loopback source was replaced by an address of this host, and that address.
        table: Checked table, with changes applied.
        script: Timed changes that it plays from its start; None: it changes only on request.
    """

    path: Path
    spec: RigSpec
    lidars: tuple[LidarSetting, ...]
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sinks: tuple[SinkSetting, ...] = ()
    hosts: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    script: Script | None = None

    @property
    def name(self) -> str:
        """Name of the rig."""
        return self.spec.name

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of its emulated lidars."""
        return tuple(sensor.name for sensor in self.spec.sensor)

    @property
    def directory(self) -> Path:
        """Directory that the rig's file names are relative to."""
        return self.path.parent


def is_moved_live(rig: Rig) -> bool:
    """Whether a part moves sensors or objects as it comes (``PartKind.real_time``)."""
    return any(part_kind(table).real_time(each) for table, specs in rig.spec.parts.items() for each in specs)


def takes_timed_changes(rig: Rig) -> bool:
    """Whether sensors of a rig, and what they see, can be changed at rig times."""
    is_set = any(sensor.web is not None or sensor.time_input is not None for sensor in rig.spec.sensor)
    return rig.spec.control.takes_changes or rig.script is not None or is_moved_live(rig) or is_set


def load_rig(path: Path, changes: Changes | None = None) -> Rig:
    """Read and check a rig and the profiles it names.

    Args:
        path: Rig file, or a world or model of Gazebo (``places.SDF_SUFFIXES``), whose lidars are then published.
        changes: Changes by the command line.

    Raises:
        ConfigError: the rig, the changes or the profiles have faults; the message names all, one per line.
    """
    return rig_of_table(rig_table(path), path, changes)


def rig_of_table(table: Mapping[str, Any], path: Path, changes: Changes | None = None) -> Rig:
    """Check a rig and the profiles it names.

    Args:
        table: Contents of a rig file.
        path: Path of the rig file, or a substitute: faults start with it, and the rig's file names are relative to its directory.
        changes: Changes of the rig.

    Raises:
        ConfigError: the rig, the changes or the profiles have faults; the message names all, one per line.
    """
    try:
        changed = (changes or Changes()).made_in(table, path.parent, kinds_in(table, RigSpec))
        tables = with_tables(RigSpec, kinds_in(changed.table, RigSpec))  # --set may have added one
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    found, faults = collect_faults(tables, changed.table)
    faults = changed.faults + [f"{path}: {changed.named(fault)}" for fault in faults]
    if found is None:
        raise ConfigError("\n".join(faults))
    spec = RigSpec(**{each.name: getattr(found, each.name) for each in fields(RigSpec)})
    sensors, wrong = mounted(spec.sensor, spec.scene, spec.platform, path.parent)
    spec = replace(spec, sensor=sensors)
    faults.extend(changed.named(f"{path}: {fault}") for fault in wrong)
    lidars: list[LidarSetting] = []
    for number, sensor in enumerate(spec.sensor):
        try:
            lidars.append(sensor_lidar(sensor, spec.weather, number, path, faults=faults_on(spec.fault, sensor.name, Place.SENSOR)))
        except ConfigError as error:
            faults.extend(map(changed.named, str(error).split("\n")))
        except ValueError as error:
            faults.extend(changed.named(f"{path}: sensor[{number}].{rule}") for rule in str(error).split("; "))
    wrong = []
    settings = {
        table: tuple(part_kind(table).setting(each, number, spec, path, wrong) for number, each in enumerate(specs))
        for table, specs in spec.parts.items()
    }
    faults.extend(map(changed.named, wrong))
    faults.extend(f"{path}: {fault}" for fault in _shared_sources(spec, lidars))
    sinks, wrong = sink_settings(spec.sink)
    faults.extend(changed.named(f"{path}: {fault}") for fault in wrong)
    if faults:
        raise ConfigError("\n".join(faults))
    if spec.record.stamps == "auto":
        spec = replace(spec, record=replace(spec.record, stamps=_capture_stamps(spec, lidars)))
    rig = Rig(path=path, spec=spec, lidars=tuple(lidars), settings=settings, sinks=sinks, table=changed.table)
    check_part_faults(rig, spec.fault)
    return rig


def check_part_faults(rig: Rig, faults: Sequence[FaultSpec]) -> None:
    """Find out whether a rig's parts can have faults that befall them.

    Raises:
        ConfigError: one cannot.
    """
    for table in rig.spec.parts:
        for fault in faults:
            part_kind(table).check_fault(rig, fault)


@dataclass(frozen=True, kw_only=True)
class _Faults:
    fault: tuple[AnyFault, ...] = ()


def with_faults(rig: Rig, faults: Sequence[Mapping[str, Any]]) -> Rig:
    """The rig with further ``[[fault]]`` tables.

    Raises:
        ConfigError: a table is wrong, or befalls nothing that the rig has.
    """
    found, wrong = collect_faults(_Faults, {"fault": list(map(dict, faults))})
    if found is None:
        raise ConfigError("\n".join(wrong))
    try:
        spec = replace(rig.spec, fault=(*rig.spec.fault, *found.fault))
        lidars = tuple(replace(lidar, faults=faults_on(spec.fault, lidar.name, Place.SENSOR)) for lidar in rig.lidars)
    except ValueError as error:
        raise ConfigError("\n".join(str(error).split("; "))) from error
    check_part_faults(rig, found.fault)
    return replace(rig, spec=spec, lidars=lidars)


def without_faults(rig: Rig, name: str) -> Rig:
    """The rig without its ``[[fault]]`` tables of a name or kind, or a pattern."""
    faults = tuple(fault for fault in rig.spec.fault if not fault.is_called(name))
    lidars = tuple(replace(lidar, faults=faults_on(faults, lidar.name, Place.SENSOR)) for lidar in rig.lidars)
    return replace(rig, spec=replace(rig.spec, fault=faults), lidars=lidars)


def with_recording(rig: Rig, values: Mapping[str, str | float]) -> Rig:
    """Replace keys of the rig's ``[record]`` by those of the command line.

    Raises:
        ConfigError: the keys are inconsistent.
    """
    if not values:
        return rig
    try:
        record = replace(rig.spec.record, **values)  # type: ignore[arg-type] # keys and types are those of the command's options
        require((bool(record.file), "file must be given where rotation is"))
    except ValueError as error:
        raise ConfigError("\n".join(f"{rig.path} with the command line's options: record.{fault}" for fault in str(error).split("; "))) from error
    return replace(rig, spec=replace(rig.spec, record=record))


def _shared_sources(spec: RigSpec, lidars: list[LidarSetting]) -> list[str]:
    """Faults for source addresses that several senders share."""
    families = {lidar.name: lidar.family for lidar in lidars}
    by_source: dict[tuple[str, str], list[str]] = {}
    by_flow: dict[tuple[str, str, int], list[str]] = {}
    for sensor in spec.sensor:
        network, family = sensor.network, families.get(sensor.name)
        if family is None:
            continue  # it has faults of its own
        if family.is_known_by_source:
            by_source.setdefault((family.title, network.source), []).append(sensor.name)
        else:
            for layout in family.flows(network.data_port, network.position_port):
                by_flow.setdefault((network.source, network.destination, layout.destination_port), []).append(sensor.name)
    for each in (each for table, specs in spec.parts.items() if part_kind(table).is_sensor for each in specs):
        flow = (each.source, each.destination, each.destination_port)
        if flow in by_flow:
            by_flow[flow].append(each.name)
    of_flows: dict[tuple[str, ...], str] = {}  # one fault for flows that share both ports
    for (source, destination, port), names in by_flow.items():
        if len(names) > 1:
            of_flows.setdefault(
                tuple(names),
                f"network.source (or the port) must differ for {' and '.join(names)}: a receiver would take their packets for one sensor's,"
                f" got {source} to {destination}:{port} for each",
            )
    return [
        *(
            f"network.source of {title} sensors must differ (receivers distinguish them by nothing else), got {source} for {' and '.join(names)}"
            for (title, source), names in by_source.items()
            if len(names) > 1
        ),
        *of_flows.values(),
    ]


def _capture_stamps(spec: RigSpec, lidars: list[LidarSetting]) -> CaptureStamps:
    """Default unit of a capture's stamps: the one that the software for these sensors reads; nanoseconds if they differ, or with others' packets."""
    stamps = {lidar.family.capture_stamps for lidar in lidars}
    return stamps.pop() if len(stamps) == 1 and len(spec.streams) == len(lidars) else "ns"
