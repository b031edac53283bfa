"""What stands in for a GPU where none is: the CPU's renderer behind the same interface."""

from hilsim.errors import DeviceError
from tests.renderers import CpuRenderer


class Device:
    """Casts as a device does, until it is set to fail.

    Attributes:
        rays: How many were cast together, at each call.
        fails: Whether it fails from now on.
    """

    name = "a processor"

    def __init__(self):
        self.renderer, self.rays, self.fails = CpuRenderer(), [], False

    def cast_slices(self, world, slices):
        """As ``DeviceRenderer`` says."""
        if self.fails:
            raise DeviceError("a processor: has fallen off the bus")
        self.rays.append(sum(len(part.range_m) for part in slices))
        for rays in slices:
            self.renderer.cast_rays(world, *rays)
