"""Ground truth by the stages one by one, for comparing with the fused kernel."""

import numpy as np

from hilsim.emulator.truth import allocate_truth, note_returns


def returns_truth(lidar, first, count, renderer):
    """Ground truth of the returns in data packets ``first`` to ``first + count - 1``, with rays cast by ``renderer``."""
    plan = lidar.plan
    truth = allocate_truth(count * plan.sequences_per_packet * plan.firing_offset_ns.size * plan.choice.size)
    workspace = lidar.firings(first, count, renderer)
    mount_m = np.array(lidar.setting.setup.mount_position_m)
    rows = note_returns(plan, lidar.platform, lidar.world, mount_m, first, workspace, truth, 0)
    return type(truth)(*(column[:rows] for column in truth))
