"""Names for plug-ins: sinks and sensor families of other distributions, found by entry points; docs/how-to/write-a-plugin.md lists the promised names.

Every name is loaded when it is first used: a module with a sink does not wait for what families need.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names

if TYPE_CHECKING:
    from hilsim.compilation.jit import kernel
    from hilsim.emulator.families.base import FlowLayout, LidarFamily
    from hilsim.emulator.families.own import family_kernels
    from hilsim.errors import require
    from hilsim.families.cepton.family import CeptonFamily
    from hilsim.families.cepton.specs import CeptonSpec
    from hilsim.families.velodyne.family import VelodyneFamily
    from hilsim.families.velodyne.specs import VelodyneSpec
    from hilsim.protocols.ethernet import LinkStyle
    from hilsim.scene.background import AzimuthGrid
    from hilsim.sensor.echoes import EchoChoice
    from hilsim.sensor.head import turning_head
    from hilsim.sensor.specs import LidarSpec
    from hilsim.sinks.base import SentBatch, Sink, SinkFlow
    from hilsim.sinks.plugin import SinkContext, SinkPlugin

__all__ = [
    "AzimuthGrid",
    "CeptonFamily",
    "CeptonSpec",
    "EchoChoice",
    "FlowLayout",
    "LidarFamily",
    "LidarSpec",
    "LinkStyle",
    "SentBatch",
    "Sink",
    "SinkContext",
    "SinkFlow",
    "SinkPlugin",
    "VelodyneFamily",
    "VelodyneSpec",
    "family_kernels",
    "kernel",
    "require",
    "turning_head",
]

_HOMES = {
    "AzimuthGrid": "hilsim.scene.background",
    "CeptonFamily": "hilsim.families.cepton.family",
    "CeptonSpec": "hilsim.families.cepton.specs",
    "EchoChoice": "hilsim.sensor.echoes",
    "FlowLayout": "hilsim.emulator.families.base",
    "LidarFamily": "hilsim.emulator.families.base",
    "LidarSpec": "hilsim.sensor.specs",
    "LinkStyle": "hilsim.protocols.ethernet",
    "SentBatch": "hilsim.sinks.base",
    "Sink": "hilsim.sinks.base",
    "SinkContext": "hilsim.sinks.plugin",
    "SinkFlow": "hilsim.sinks.base",
    "SinkPlugin": "hilsim.sinks.plugin",
    "VelodyneFamily": "hilsim.families.velodyne.family",
    "VelodyneSpec": "hilsim.families.velodyne.specs",
    "family_kernels": "hilsim.emulator.families.own",
    "kernel": "hilsim.compilation.jit",
    "require": "hilsim.errors",
    "turning_head": "hilsim.sensor.head",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
