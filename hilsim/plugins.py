"""Names for plug-ins: sinks and sensor families of other distributions, found by entry points; docs/how-to/write-a-plugin.md lists the promised names.

Every name is loaded when it is first used: a module with a sink does not wait for what families need.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names

if TYPE_CHECKING:
    from hilsim.analysis.conformance.findings import Place, Rule, Severity
    from hilsim.analysis.conformance.part import Claim, ConformancePart, SensorCheck
    from hilsim.analysis.conformance.result import SensorSummary
    from hilsim.analysis.decode import POINT_DTYPE, paired
    from hilsim.analysis.picture.part import Gatherer, PicturePart, PictureScan, draw_above
    from hilsim.compilation.jit import kernel
    from hilsim.daemon.interfaces.part import SensorInterface
    from hilsim.emulator.families.base import FlowLayout, LidarFamily
    from hilsim.emulator.families.own import family_kernels
    from hilsim.errors import require
    from hilsim.families.cepton.family import CeptonFamily
    from hilsim.families.cepton.specs import CeptonSpec
    from hilsim.families.velodyne.family import VelodyneFamily
    from hilsim.families.velodyne.specs import VelodyneSpec
    from hilsim.protocols.ethernet import LinkStyle
    from hilsim.protocols.recognise import KindFacts, PacketKind
    from hilsim.scans.part import ScansPart, payload_of
    from hilsim.scans.points import DECODED_DTYPE
    from hilsim.scans.stream import SensorStream
    from hilsim.scans.turns import HeadTurns, TurnStarts
    from hilsim.scene.background import AzimuthGrid
    from hilsim.sensor.echoes import EchoChoice
    from hilsim.sensor.head import turning_head
    from hilsim.sensor.specs import LidarSpec
    from hilsim.sinks.base import SentBatch, Sink, SinkFlow
    from hilsim.sinks.plugin import SinkContext, SinkPlugin

__all__ = [  # noqa: RUF022 - as dir() has them
    "AzimuthGrid",
    "CeptonFamily",
    "CeptonSpec",
    "Claim",
    "ConformancePart",
    "DECODED_DTYPE",
    "EchoChoice",
    "FlowLayout",
    "Gatherer",
    "HeadTurns",
    "KindFacts",
    "LidarFamily",
    "LidarSpec",
    "LinkStyle",
    "POINT_DTYPE",
    "PacketKind",
    "PicturePart",
    "PictureScan",
    "Place",
    "Rule",
    "ScansPart",
    "SensorCheck",
    "SensorInterface",
    "SensorStream",
    "SensorSummary",
    "SentBatch",
    "Severity",
    "Sink",
    "SinkContext",
    "SinkFlow",
    "SinkPlugin",
    "TurnStarts",
    "VelodyneFamily",
    "VelodyneSpec",
    "draw_above",
    "family_kernels",
    "kernel",
    "paired",
    "payload_of",
    "require",
    "turning_head",
]

_HOMES = {
    "DECODED_DTYPE": "hilsim.scans.points",
    "POINT_DTYPE": "hilsim.analysis.decode",
    "AzimuthGrid": "hilsim.scene.background",
    "CeptonFamily": "hilsim.families.cepton.family",
    "CeptonSpec": "hilsim.families.cepton.specs",
    "Claim": "hilsim.analysis.conformance.part",
    "ConformancePart": "hilsim.analysis.conformance.part",
    "EchoChoice": "hilsim.sensor.echoes",
    "FlowLayout": "hilsim.emulator.families.base",
    "Gatherer": "hilsim.analysis.picture.part",
    "HeadTurns": "hilsim.scans.turns",
    "KindFacts": "hilsim.protocols.recognise",
    "LidarFamily": "hilsim.emulator.families.base",
    "LidarSpec": "hilsim.sensor.specs",
    "LinkStyle": "hilsim.protocols.ethernet",
    "PacketKind": "hilsim.protocols.recognise",
    "PicturePart": "hilsim.analysis.picture.part",
    "PictureScan": "hilsim.analysis.picture.part",
    "Place": "hilsim.analysis.conformance.findings",
    "Rule": "hilsim.analysis.conformance.findings",
    "ScansPart": "hilsim.scans.part",
    "SensorCheck": "hilsim.analysis.conformance.part",
    "SensorInterface": "hilsim.daemon.interfaces.part",
    "SensorStream": "hilsim.scans.stream",
    "SensorSummary": "hilsim.analysis.conformance.result",
    "SentBatch": "hilsim.sinks.base",
    "Severity": "hilsim.analysis.conformance.findings",
    "Sink": "hilsim.sinks.base",
    "SinkContext": "hilsim.sinks.plugin",
    "SinkFlow": "hilsim.sinks.base",
    "SinkPlugin": "hilsim.sinks.plugin",
    "TurnStarts": "hilsim.scans.turns",
    "VelodyneFamily": "hilsim.families.velodyne.family",
    "VelodyneSpec": "hilsim.families.velodyne.specs",
    "draw_above": "hilsim.analysis.picture.part",
    "family_kernels": "hilsim.emulator.families.own",
    "kernel": "hilsim.compilation.jit",
    "paired": "hilsim.analysis.decode",
    "payload_of": "hilsim.scans.part",
    "require": "hilsim.errors",
    "turning_head": "hilsim.sensor.head",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
