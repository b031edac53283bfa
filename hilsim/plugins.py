"""Names for plug-ins: sinks, sensor families and parts of other distributions, found by entry points; docs/how-to/write-a-plugin.md lists the promised names.

Every name is loaded when it is first used: a module with a sink does not wait for what families need.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names

if TYPE_CHECKING:
    from hilsim.capture.sinks.base import SentBatch, Sink, SinkFlow
    from hilsim.capture.sinks.plugin import SinkContext, SinkPlugin
    from hilsim.compilation.jit import kernel
    from hilsim.config.part_kind import BoundPort, PartKind
    from hilsim.config.rig import Rig, RigSpec
    from hilsim.daemon.flows import Flows
    from hilsim.daemon.interfaces.part import KeptSettings, SensorInterface
    from hilsim.daemon.interfaces.served import ServedSensor
    from hilsim.daemon.parts import Changes, Needs, Part, RigClock, RigContext
    from hilsim.daemon.streaming.plain_flow import PlainFlow
    from hilsim.emulator.families.base import FlowLayout, LidarFamily
    from hilsim.emulator.families.own import family_kernels
    from hilsim.errors import require
    from hilsim.families.cepton.family import CeptonFamily
    from hilsim.families.cepton.specs import CeptonSpec
    from hilsim.families.velodyne.family import VelodyneFamily
    from hilsim.families.velodyne.specs import VelodyneSpec
    from hilsim.protocols.ethernet import LinkStyle
    from hilsim.protocols.flow_key import FlowKey
    from hilsim.protocols.recognise import KindFacts, PacketKind
    from hilsim.read.analysis.conformance.findings import Place, Rule, Severity
    from hilsim.read.analysis.conformance.part import Claim, ConformancePart, SensorCheck
    from hilsim.read.analysis.conformance.result import SensorSummary
    from hilsim.read.analysis.decode import POINT_DTYPE, paired
    from hilsim.read.analysis.picture.part import Gatherer, PicturePart, PictureScan, draw_above
    from hilsim.read.scans.part import ScansPart, payload_of
    from hilsim.read.scans.points import DECODED_DTYPE
    from hilsim.read.scans.stream import SensorStream
    from hilsim.read.scans.turns import HeadTurns, TurnStarts
    from hilsim.sensor.echoes import EchoChoice
    from hilsim.sensor.head import turning_head
    from hilsim.sensor.specs import LidarSpec
    from hilsim.telemetry.faults import Fault
    from hilsim.telemetry.metrics import Label, Losses, counter, gauge
    from hilsim.telemetry.readings import Reading
    from hilsim.world.scene.background import AzimuthGrid

__all__ = [  # noqa: RUF022 - as dir() has them
    "AzimuthGrid",
    "BoundPort",
    "CeptonFamily",
    "CeptonSpec",
    "Changes",
    "Claim",
    "ConformancePart",
    "DECODED_DTYPE",
    "EchoChoice",
    "Fault",
    "FlowKey",
    "FlowLayout",
    "Flows",
    "Gatherer",
    "HeadTurns",
    "KeptSettings",
    "KindFacts",
    "Label",
    "LidarFamily",
    "LidarSpec",
    "LinkStyle",
    "Losses",
    "Needs",
    "POINT_DTYPE",
    "PacketKind",
    "Part",
    "PartKind",
    "PicturePart",
    "PictureScan",
    "Place",
    "PlainFlow",
    "Reading",
    "Rig",
    "RigClock",
    "RigContext",
    "RigSpec",
    "Rule",
    "ScansPart",
    "SensorCheck",
    "SensorInterface",
    "SensorStream",
    "SensorSummary",
    "SentBatch",
    "ServedSensor",
    "Severity",
    "Sink",
    "SinkContext",
    "SinkFlow",
    "SinkPlugin",
    "TurnStarts",
    "VelodyneFamily",
    "VelodyneSpec",
    "counter",
    "draw_above",
    "family_kernels",
    "gauge",
    "kernel",
    "paired",
    "payload_of",
    "require",
    "turning_head",
]

_HOMES = {
    "DECODED_DTYPE": "hilsim.read.scans.points",
    "POINT_DTYPE": "hilsim.read.analysis.decode",
    "AzimuthGrid": "hilsim.world.scene.background",
    "BoundPort": "hilsim.config.part_kind",
    "CeptonFamily": "hilsim.families.cepton.family",
    "CeptonSpec": "hilsim.families.cepton.specs",
    "Changes": "hilsim.daemon.parts",
    "Claim": "hilsim.read.analysis.conformance.part",
    "ConformancePart": "hilsim.read.analysis.conformance.part",
    "EchoChoice": "hilsim.sensor.echoes",
    "Fault": "hilsim.telemetry.faults",
    "FlowKey": "hilsim.protocols.flow_key",
    "FlowLayout": "hilsim.emulator.families.base",
    "Flows": "hilsim.daemon.flows",
    "Gatherer": "hilsim.read.analysis.picture.part",
    "HeadTurns": "hilsim.read.scans.turns",
    "KeptSettings": "hilsim.daemon.interfaces.part",
    "KindFacts": "hilsim.protocols.recognise",
    "Label": "hilsim.telemetry.metrics",
    "LidarFamily": "hilsim.emulator.families.base",
    "LidarSpec": "hilsim.sensor.specs",
    "LinkStyle": "hilsim.protocols.ethernet",
    "Losses": "hilsim.telemetry.metrics",
    "Needs": "hilsim.daemon.parts",
    "PacketKind": "hilsim.protocols.recognise",
    "Part": "hilsim.daemon.parts",
    "PartKind": "hilsim.config.part_kind",
    "PicturePart": "hilsim.read.analysis.picture.part",
    "PictureScan": "hilsim.read.analysis.picture.part",
    "Place": "hilsim.read.analysis.conformance.findings",
    "PlainFlow": "hilsim.daemon.streaming.plain_flow",
    "Reading": "hilsim.telemetry.readings",
    "Rig": "hilsim.config.rig",
    "RigClock": "hilsim.daemon.parts",
    "RigContext": "hilsim.daemon.parts",
    "RigSpec": "hilsim.config.rig",
    "Rule": "hilsim.read.analysis.conformance.findings",
    "ScansPart": "hilsim.read.scans.part",
    "SensorCheck": "hilsim.read.analysis.conformance.part",
    "SensorInterface": "hilsim.daemon.interfaces.part",
    "SensorStream": "hilsim.read.scans.stream",
    "SensorSummary": "hilsim.read.analysis.conformance.result",
    "SentBatch": "hilsim.capture.sinks.base",
    "Severity": "hilsim.read.analysis.conformance.findings",
    "ServedSensor": "hilsim.daemon.interfaces.served",
    "Sink": "hilsim.capture.sinks.base",
    "SinkContext": "hilsim.capture.sinks.plugin",
    "SinkFlow": "hilsim.capture.sinks.base",
    "SinkPlugin": "hilsim.capture.sinks.plugin",
    "TurnStarts": "hilsim.read.scans.turns",
    "VelodyneFamily": "hilsim.families.velodyne.family",
    "VelodyneSpec": "hilsim.families.velodyne.specs",
    "counter": "hilsim.telemetry.metrics",
    "draw_above": "hilsim.read.analysis.picture.part",
    "family_kernels": "hilsim.emulator.families.own",
    "gauge": "hilsim.telemetry.metrics",
    "kernel": "hilsim.compilation.jit",
    "paired": "hilsim.read.analysis.decode",
    "payload_of": "hilsim.read.scans.part",
    "require": "hilsim.errors",
    "turning_head": "hilsim.sensor.head",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
