"""Cepton-style models made by hand, for tests that need exact geometry."""

import dataclasses

from hilsim.families.cepton.specs import CeptonSpec
from hilsim.sensor.mirror import MirrorSpec, SegmentSpec

MIDDLE = SegmentSpec(image_x=0.0, image_z=0.0)
TEN_HZ = MirrorSpec(x_hz=10.0, x_amplitude=0.5, z_hz=200.0, z_amplitude=0.2)
STARING = MirrorSpec(x_hz=1.0, x_amplitude=1e-12, z_hz=1.0, z_amplitude=1e-12)
"""Looks at the middle of each segment, but for a billionth of a millimetre."""


def mirror_spec(segments=(MIDDLE,), swept=TEN_HZ, **changes):
    """A model without noise, of a hard threshold, in counts of 1 mm."""
    return CeptonSpec(
        **{
            "family": "cepton",
            "model": "hand-made",
            "model_code": 3,
            "mac_prefix": "18:12:12",
            "firing_ns": 8000,
            "sequence_ns": 64_000,
            "range_unit_mm": 1.0,
            "range_min_m": 1.0,
            "range_max_m": 300.0,
            "range_noise_m": 0.0,
            "data_latency_us": 100.0,
            "segments": tuple(segments),
            "mirror": swept,
        }
        | changes
    )


def with_detector(spec, **changes):
    """The model with another receiver."""
    return dataclasses.replace(spec, detector=dataclasses.replace(spec.detector, **changes))


def row_of_eight(x=(-0.35, -0.25, -0.15, -0.05, 0.05, 0.15, 0.25, 0.35), z=0.0):
    """Eight segments side by side."""
    return tuple(SegmentSpec(image_x=middle, image_z=z) for middle in x)
