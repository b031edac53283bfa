"""Hand-placed walls before a still lidar whose firings of sequence 0 leave along +x, all channels level: scenes with numbers known beforehand."""

import dataclasses
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from hilsim.emulator.batch import Flow
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import trace
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.reception.detection import respond
from hilsim.emulator.workspace import allocate_workspace
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

CODE_M = 0.002
EVERYWHERE = (-60.0, 60.0)


def diffuse(percent, **openness):
    return Material(name=f"diffuse {percent} {openness}", reflectivity=percent, **openness)


def wall(range_m, material, *, y=EVERYWHERE, z=EVERYWHERE, angle_deg=0.0, label=0):
    """A rectangle that faces the sensor; at an angle it is turned about its vertical middle line."""
    turn = np.radians(angle_deg)
    corners = [
        (range_m - across * np.sin(turn), across * np.cos(turn), up) for across, up in ((y[0], z[0]), (y[1], z[0]), (y[1], z[1]), (y[0], z[1]))
    ]
    return SceneObject(mesh=Mesh.uniform(corners, [[0, 1, 2], [0, 2, 3]], material), label=label)


def level(spec, **changes):
    """A model whose channels are all level, whose head turns evenly, and that has no noise and a hard threshold."""
    detector = {"noise_ratio": 0.0, "range_noise_weak_m": 0.0} | changes.pop("detector", {})
    channels = tuple(dataclasses.replace(channel, elevation_deg=0.0, vertical_offset_mm=0.0) for channel in spec.channels)
    encoder = (EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0),)
    return dataclasses.replace(
        spec,
        **{
            "channels": channels,
            "encoder": encoder,
            "rate_jitter": RateJitterSpec(),
            "range_noise_m": 0.0,
            "signal": SignalSpec(),
            "detector": dataclasses.replace(spec.detector, **detector),
        }
        | changes,
    )


def still_lidar(objects, spec, *, seed=9, at=None, **setting):
    flow = Flow(name="lidar/data", source="127.0.1.201", source_port=2368, destination="127.0.0.1", destination_port=2368)
    return LidarEmulator(
        setting=lidar_setting(**{"spec": spec} | setting),
        world=build_world(objects),
        platform=build_platform(fixed_track(at or Pose())),
        seed=seed,
        utc_epoch_ns=1_767_225_600_000_000_000,
        data_flow=flow,
        position_flow=flow,
    )


def seeing_relief(lidar, ratio):
    """What renders a lidar, with a signal that shows the relief of surfaces, as no ideal unit's does."""
    plan = lidar.plan._replace(signal=lidar.plan.signal._replace(relief_ratio=ratio))
    return SimpleNamespace(plan=plan, platform=lidar.platform, world=lidar.world)


def workspace_of(lidar, sequences=1, first=0):
    """The first firing sequences through all stages, without packets around them: 16 firings are few enough for kernels as plain Python."""
    workspace = allocate_workspace(lidar.plan, sequences, is_opaque=lidar.world.is_opaque)
    workspace.sequence[:] = np.arange(first, first + sequences)
    fire(lidar.plan, lidar.platform, workspace.sequence, workspace.rays)
    trace(lidar.plan, lidar.world, workspace)
    respond(lidar.plan, workspace)
    return workspace


class Return(NamedTuple):
    """Range (m, of the code) and reflectivity byte of one return; range 0 for none."""

    range_m: float
    byte: int


def ahead(lidar):
    """What the firing along +x (channel 0 of sequence 0) reports."""
    returns = workspace_of(lidar).returns
    return [
        Return(round(int(code) * CODE_M, 3), int(byte)) for code, byte in zip(returns.distance[:, 0, 0], returns.reflectivity[:, 0, 0], strict=True)
    ]
