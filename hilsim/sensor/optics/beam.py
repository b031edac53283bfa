"""A beam as a bundle of rays: position of each ray in the spot, and its share of the light."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import require
from hilsim.sensor.specs import SUB_RAY_COUNTS, BeamSpec

_RINGS: dict[int, tuple[tuple[int, float], ...]] = {1: ((1, 0.0),), 7: ((1, 0.0), (6, 2.0 / 3.0)), 19: ((1, 0.0), (6, 0.4), (12, 0.8))}
"""Number of rays and radius of each ring, in half spots; with these, equal weights cover the spot evenly (recommended, unproven)."""


HALO_RAYS = 6
"""Rays of the faint ring about the spot."""
_MARGIN = 1.001  # a ray's unit direction has a smaller transverse component than its tangent; rounding errors as well


class Beam(NamedTuple):
    """Kernel-side bundle of k rays; the first is the beam's centre, and the last one the receiver's axis where the receiver lies beside the beam.

    Attributes:
        tangent: ``float64[k, 2]``, tangents of the horizontal and vertical angle from the centre.
        offset_m: ``float64[k, 2]``, horizontal and vertical offset of the ray's origin.
        share: ``float64[k]``, share of the light; the sum is 1. The receiver's axis has none.
        width_m: Largest distance of a ray's origin from the centre ray's.
        spread: Largest tangent of an angle from the centre ray.
        receiver: Number of the receiver's axis; -1 for none.
    """

    tangent: npt.NDArray[np.float64]
    offset_m: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]
    width_m: float
    spread: float
    receiver: int = -1


def build_beam(spec: BeamSpec, sub_rays: int) -> Beam:
    """Build the kernel-side bundle of a beam.

    Raises:
        ValueError: ``sub_rays`` is not supported.
    """
    require((sub_rays in SUB_RAY_COUNTS, f"sub_rays must be one of {', '.join(map(str, SUB_RAY_COUNTS))}, got {sub_rays}"))
    points = []
    rings = [*_RINGS[sub_rays], (HALO_RAYS, spec.halo_ratio)] if spec.halo_share > 0.0 else _RINGS[sub_rays]
    for count, radius in rings:
        angle = 2.0 * np.pi * np.arange(count) / count
        points.append(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    place = np.concatenate(points)
    half_rad = np.array([spec.divergence_h_mrad, spec.divergence_v_mrad]) / 2000.0
    half_window_m = np.array([spec.window_h_mm, spec.window_v_mm]) / 2000.0
    weight = np.exp(-2.0 * np.sum(place[:sub_rays] ** 2, axis=1)) if spec.profile == "gaussian" else np.ones(sub_rays)
    share = (1.0 - spec.halo_share) * weight / weight.sum()
    share = np.append(share, np.full(len(place) - sub_rays, spec.halo_share / HALO_RAYS))
    tangent, offset_m = np.tan(place * half_rad), place * half_window_m
    has_receiver = spec.receiver_offset_mm != 0.0 and sub_rays > 1
    if has_receiver:
        tangent, share = np.append(tangent, [[0.0, 0.0]], axis=0), np.append(share, 0.0)
        offset_m = np.append(offset_m, [[spec.receiver_offset_mm / 1000.0, 0.0]], axis=0)
    return Beam(
        tangent=tangent,
        offset_m=offset_m,
        share=share,
        width_m=float(np.linalg.norm(offset_m, axis=1).max()),
        spread=float(np.linalg.norm(tangent, axis=1).max()) * _MARGIN,
        receiver=len(place) if has_receiver else -1,
    )
