"""Cepton-style lidars before hand-placed walls, and their points."""

import numpy as np

from hilsim.emulator.batch import Flow
from hilsim.emulator.fused import render_data_packets
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.workspace import EmulatorCount, allocate_workspace
from hilsim.families.cepton.protocol.stdv import PointFlag, decode_stdv_points, read_stdv_header
from hilsim.sensor.mirror import build_mirror, image_point
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.world import build_world
from tests.lidars import lidar_setting

UTC_EPOCH_NS = 1_767_225_600_000_000_000
POINT_M = 0.005


def swept_lidar(objects, spec, *, platform=None, seed=9, **setting):
    """A lidar that looks along +x of the world; to its right is -y."""
    flow = Flow(name="lidar/points", source="127.0.2.1", source_port=8808, destination="127.0.0.1", destination_port=8808)
    return LidarEmulator(
        setting=lidar_setting(**{"spec": spec} | setting),
        world=build_world(objects),
        platform=platform or build_platform(fixed_track(Pose())),
        seed=seed,
        utc_epoch_ns=UTC_EPOCH_NS,
        data_flow=flow,
        position_flow=flow,
    )


def payloads(batch):
    return [row[:size].tobytes() for row, size in zip(batch.payload, batch.size, strict=True)]


def points_of(lidar, first=0, count=1):
    """Records of all points of some packets."""
    return np.concatenate([decode_stdv_points(payload) for payload in payloads(lidar.data_packets(first, count))])


def headers_of(batch):
    return [read_stdv_header(payload) for payload in payloads(batch)]


def counted(lidar, count=1):
    """Points of the first packets, and how many returns they could not say."""
    plan = lidar.plan
    workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=lidar.world.is_opaque)
    size, datagrams = np.zeros(count, np.int32), np.zeros((count, plan.data_size), np.uint8)
    render_data_packets(plan, lidar.platform, lidar.world, lidar.data_framing, 0, workspace, size, datagrams)
    return np.concatenate([decode_stdv_points(row.tobytes()) for row in datagrams]), int(workspace.counts[EmulatorCount.UNREPRESENTABLE])


def firings(lidar, first=0, count=1):
    """``int64[n]``: channel and device time of every point of some packets, in the order of the points."""
    spec, setting = lidar.setting.spec, lidar.setting
    sequences = setting.sequences_per_packet
    sequence = np.arange(first * sequences, (first + count) * sequences, dtype=np.int64)
    channel = np.arange(spec.laser_count)
    device_ns = sequence[:, None] * spec.sequence_ns + channel // spec.lasers_per_firing * spec.firing_ns
    every = np.broadcast_to(channel, device_ns.shape)
    return np.repeat(every.ravel(), setting.family.returns), np.repeat(device_ns.ravel(), setting.family.returns)


def images(lidar, channel, device_ns):
    """``float64[n, 2]`` of where firings look."""
    spec = lidar.setting.spec
    swept = build_mirror(spec.mirror, spec.segments, phase_deg=lidar.setting.setup.phase_deg or 0.0)
    return np.array([image_point(swept, int(laser), int(time)) for laser, time in zip(channel, device_ns, strict=True)])


def returned(points):
    return points["flags"] & PointFlag.NO_RETURN == 0


def metres(points):
    return np.stack([points[axis] * POINT_M for axis in "xyz"], axis=-1)
