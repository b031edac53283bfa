"""Fourth stage: returns → bytes of a data packet."""

import numpy as np
import numpy.typing as npt

from hilsim._jit import inlined_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.shots import Returns
from hilsim.packets.velodyne_data import encode_data_packet
from hilsim.sensor.clock import stamp_us


@inlined_kernel
def encode(plan: LidarPlan, packet: int, returns: Returns, offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset : offset + 1206]`` from the returns of its firing sequences."""
    stamp = stamp_us(plan.clock, packet * plan.sequences_per_packet * plan.sequence_ns)
    encode_data_packet(returns.azimuth_cdeg, returns.distance, returns.reflectivity, stamp, plan.return_mode, plan.product, payload[offset:])
