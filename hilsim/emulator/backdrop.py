"""Between firing and hits: what a captured background shows to each firing."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import stage_kernel
from hilsim.emulator.overlay import Backdrop, sample_image, sample_turning
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.head import head_turns
from hilsim.sensor.mirror import image_point
from hilsim.units import TURN_CDEG


@stage_kernel
def sample_background(plan: LidarPlan, sequence_index: npt.NDArray[np.int64], backdrop: Backdrop) -> None:
    """Write what the background shows to each firing of some sequences, by where the firing looks at its own time.

    Args:
        plan: The lidar.
        sequence_index: ``int64[s]``, rising indices of the firing sequences.
        backdrop: Written, ``[channel, sequence]`` flattened.
    """
    overlay = plan.overlay
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
            if plan.is_swept:
                image_x, image_z = image_point(plan.mirror, channel, device_ns + offset_ns)
                range_m, ratio = sample_image(overlay, image_x, image_z)
            else:
                turns = start_turns + travelled * (offset_ns / plan.sequence_ns) + plan.azimuth_offset_rad[channel] / (2.0 * math.pi)
                range_m, ratio = sample_turning(overlay, channel, TURN_CDEG * turns)
            backdrop.range_m[firing] = range_m
            backdrop.ratio[firing] = ratio
