"""Between firing and hits: what a captured background shows to each firing."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, kernel
from hilsim.emulator.overlay import Backdrop, Overlay, OverlayRule, sample_image, sample_turning
from hilsim.emulator.plan import LidarPlan, Rare
from hilsim.sensor.head import head_turns
from hilsim.sensor.mirror import Mirror, image_point
from hilsim.units import TURN_CDEG

_SYNTHETIC_ONLY = constant(OverlayRule.SYNTHETIC_ONLY)


@kernel
def _sample(mirror: Mirror | None, overlay: Overlay, channel: int, device_ns: int, azimuth_cdeg: float) -> tuple[float, float]:
    """Range and ratio where a mirror's or a head's beam looks."""
    if mirror is None:
        return sample_turning(overlay, channel, azimuth_cdeg)
    image_x, image_z = image_point(mirror, channel, device_ns)
    return sample_image(overlay, image_x, image_z)


@borrowing_kernel
def sample_background(rare: Rare | None, plan: LidarPlan, sequence_index: npt.NDArray[np.int64], backdrop: Backdrop) -> None:
    """Write what the background shows to each firing of some sequences, by where the firing looks at its own time.

    Args:
        rare: The plan's; without a background nothing is written.
        plan: The lidar.
        sequence_index: ``int64[s]``, rising indices of the firing sequences.
        backdrop: Written, ``[channel, sequence]`` flattened.
    """
    if rare is None or rare.overlay.rule == _SYNTHETIC_ONLY:
        return
    overlay = rare.overlay
    channels = plan.firing_offset_ns.size
    sequences, stop_turns = sequence_index.size, 0.0
    for sequence in range(sequences):
        device_ns = sequence_index[sequence] * plan.sequence_ns
        if sequence == 0 or sequence_index[sequence] != sequence_index[sequence - 1] + 1:
            stop_turns = head_turns(plan.head, device_ns)
        start_turns = stop_turns
        stop_turns = head_turns(plan.head, device_ns + plan.sequence_ns)
        travelled = stop_turns - start_turns
        travelled -= math.floor(travelled + 0.5)  # over the seam of a turn
        for channel in range(channels):
            firing = channel * sequences + sequence
            offset_ns = plan.firing_offset_ns[channel]
            turns = start_turns + travelled * (offset_ns / plan.sequence_ns) + plan.azimuth_offset_rad[channel] / (2.0 * math.pi)
            range_m, ratio = _sample(plan.mirror, overlay, channel, device_ns + offset_ns, TURN_CDEG * turns)
            backdrop.range_m[firing] = range_m
            backdrop.ratio[firing] = ratio
