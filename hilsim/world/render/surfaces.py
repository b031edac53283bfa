"""Light that a surface returns of a ray: texture, flaws, gloss, mirror image.

The lobe of a glossy surface is the Phong model's, as in HELIOS++ ``EnergyMaths.cpp``: cos^n of the angle between the mirror's direction and the
sensor, which is twice the incidence. The texture is a noise of two octaves in cells, fixed to the object. It is a relief as well as a colour: slopes with a
standard deviation of 0.3 times ``texture`` (rad) change the incidence, which shows the more the flatter a beam meets the surface (inferred from captures:
what is dark because it is met at a flat angle has the larger relative differences).
"""

import math
from typing import Any

import numpy as np

from hilsim.compilation.jit import borrowing_kernel, inlined_kernel, kernel
from hilsim.compilation.lanes import Doubles, Words, bits_of, floor_lanes, greater_lanes, roots, select, signed_doubles, words_of
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.render.movers import mover_pose
from hilsim.world.scene.world import World

_GLOSS_EXPONENT = 20
"""Exponent of the lobe, which has half its height at 15 degrees; recommended, unproven (car paints have narrower ones)."""
_RELIEF = 0.3
"""Slope of the relief of a texture (rad), as a share of the texture's contrast; recommended, unproven."""
_FLATTEST = 0.3
"""Cosine of the incidence from which on the relief no longer gains contrast: its slopes hide each other."""
_DARKEST = 0.1
"""Least light of a patch, relative to the mean: no patch is black."""
_FINER = 4.0
"""Ratio of the two octaves' cells; the finer one has half the other's amplitude."""
_TO_DEVIATION = math.sqrt(3.0 / 1.25)
"""From the sum of the octaves, uniform numbers of -1 to 1 and half that, to a standard deviation of 1."""
_TO_DEPTH = 2.0 * math.sqrt(3.0)
"""From the finer octave's amplitude, and a uniform number of -1 to 1, to the same."""
_SHIFT = 0.6180339887498949
_FLAWS_CELL = 4096.0
"""Where flaws lie among the cells of the noise: far from those of textures, with which they have nothing to do."""
_LOW = np.uint64(0xFFFFFFFF)
_16, _13 = np.uint64(16), np.uint64(13)
_PRIME_X, _PRIME_Y, _PRIME_Z = np.uint64(73856093), np.uint64(19349663), np.uint64(83492791)
_MIX_0, _MIX_1 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_TO_SIGNED = 1.0 / 2147483648.0
_HALF, _HALF_TO_SIGNED = np.uint64(0xFFFF), 1.0 / 32768.0
_TURN_RAD = math.radians(37.0)
"""Angle about (1, 1, 1) by which the cells are turned, so that walls and floors do not lie on the border of two cells."""
_ALONG = (1.0 + 2.0 * math.cos(_TURN_RAD)) / 3.0
_ACROSS = (1.0 - math.cos(_TURN_RAD) - math.sqrt(3.0) * math.sin(_TURN_RAD)) / 3.0
_AWRY = (1.0 - math.cos(_TURN_RAD) + math.sqrt(3.0) * math.sin(_TURN_RAD)) / 3.0


@kernel
def _cell_bits(x: float, y: float, z: float) -> np.uint64:
    """32 random bits of the unit cell that contains a place (the finaliser of MurmurHash3 over the cell's numbers)."""
    i, j, k = (
        np.uint64(math.floor(x + _SHIFT) & 0xFFFFFFFF),
        np.uint64(math.floor(y + _SHIFT) & 0xFFFFFFFF),
        np.uint64(math.floor(z + _SHIFT) & 0xFFFFFFFF),
    )
    h = (i * _PRIME_X ^ j * _PRIME_Y ^ k * _PRIME_Z) & _LOW
    h = (h ^ h >> _16) * _MIX_0 & _LOW
    h = (h ^ h >> _13) * _MIX_1 & _LOW
    return h ^ h >> _16


@kernel
def _cell_noise(x: float, y: float, z: float) -> float:
    """Even noise of -1 to 1 of the unit cell that contains a place."""
    return float(_cell_bits(x, y, z)) * _TO_SIGNED - 1.0


@kernel
def _all_cell_bits(x: Doubles, y: Doubles, z: Doubles) -> Words:
    """``_cell_bits`` of sixteen places."""
    i, j, k = words_of(floor_lanes(x + _SHIFT)) & _LOW, words_of(floor_lanes(y + _SHIFT)) & _LOW, words_of(floor_lanes(z + _SHIFT)) & _LOW
    h = (i * _PRIME_X ^ j * _PRIME_Y ^ k * _PRIME_Z) & _LOW
    h = (h ^ h >> _16) * _MIX_0 & _LOW
    h = (h ^ h >> _13) * _MIX_1 & _LOW
    return h ^ h >> _16


@inlined_kernel
def _turned(x_m: Any, y_m: Any, z_m: Any, size_m: Any) -> tuple[Any, Any, Any]:
    """A place of an object in cells of ``size_m``."""
    u = (_ALONG * x_m + _ACROSS * y_m + _AWRY * z_m) / size_m
    v = (_AWRY * x_m + _ALONG * y_m + _ACROSS * z_m) / size_m
    return u, v, (_ACROSS * x_m + _AWRY * y_m + _ALONG * z_m) / size_m


@kernel
def flaw_at(x_m: float, y_m: float, z_m: float, ratio: float, size_m: float) -> float:
    """Share of the light that is lost at a place of an object, 0 where it has no flaw.

    Args:
        x_m: Place in the object's frame.
        y_m: See ``x_m``.
        z_m: See ``x_m``.
        ratio: Share of the surface that is flawed.
        size_m: Size of a flaw.
    """
    u, v, w = _turned(x_m, y_m, z_m, size_m)
    depth = 1.0 - 0.5 * (_cell_noise(u + _FLAWS_CELL, v, w) + 1.0) / ratio
    return depth * depth if depth > 0.0 else 0.0


@kernel
def texture_noise(x_m: float, y_m: float, z_m: float, size_m: float, spot_m: float) -> tuple[float, float]:
    """Noise and depth at a place of an object, with mean 0 and standard deviation 1 for a beam of no width; the two have nothing to do with each other.

    Args:
        x_m: Place in the object's frame.
        y_m: See ``x_m``.
        z_m: See ``x_m``.
        size_m: Size of the larger patches.
        spot_m: Width of the beam's spot: patches that are smaller than it show with less contrast, as a spot that covers many of them sees their mean.
    """
    u, v, w = _turned(x_m, y_m, z_m, size_m)
    spot = spot_m / size_m
    coarse, fine = 1.0 / math.sqrt(1.0 + spot * spot), 0.5 / math.sqrt(1.0 + _FINER * spot * _FINER * spot)
    bits = _cell_bits(_FINER * u, _FINER * v, _FINER * w)
    noise = coarse * _cell_noise(u, v, w) + fine * (float(bits) * _TO_SIGNED - 1.0)
    return _TO_DEVIATION * noise, _TO_DEPTH * fine * (float(bits & _HALF) * _HALF_TO_SIGNED - 1.0)


@kernel
def texture_noises(x_m: Doubles, y_m: Doubles, z_m: Doubles, size_m: Doubles, spot_m: Doubles) -> tuple[Doubles, Doubles]:
    """``texture_noise`` of sixteen places, bit by bit (tested)."""
    u, v, w = _turned(x_m, y_m, z_m, size_m)
    spot = spot_m / size_m
    coarse, fine = 1.0 / roots(spot * spot + 1.0), 0.5 / roots(_FINER * spot * _FINER * spot + 1.0)
    bits = _all_cell_bits(u * _FINER, v * _FINER, w * _FINER)
    noise = coarse * (signed_doubles(_all_cell_bits(u, v, w)) * _TO_SIGNED - 1.0) + fine * (signed_doubles(bits) * _TO_SIGNED - 1.0)
    return noise * _TO_DEVIATION, fine * _TO_DEPTH * (signed_doubles(bits & _HALF) * _HALF_TO_SIGNED - 1.0)


@inlined_kernel
def within(position_m: Vector, turn: Quaternion, place_m: Vector) -> Vector:
    """A place in the frame that has its origin at ``position_m`` and is turned by ``turn``."""
    return rotate(conjugate(turn), (place_m[0] - position_m[0], place_m[1] - position_m[1], place_m[2] - position_m[2]))


@borrowing_kernel
def place_on_mover(world: World, instance: int, time_ns: int, x_m: float, y_m: float, z_m: float) -> Vector:
    """A place (m) of the world on a moving object, in the object's frame, in which it is the same wherever the object is."""
    row = world.instance_object[instance]
    position_m, turn = mover_pose(world, instance - world.tile_count, time_ns)
    x, y, z = world.object_position_m[row, 0], world.object_position_m[row, 1], world.object_position_m[row, 2]
    orientation = world.object_orientation[row]
    return within((x, y, z), (orientation[0], orientation[1], orientation[2], orientation[3]), within(position_m, turn, (x_m, y_m, z_m)))


@inlined_kernel
def _lit(gloss: float, cosine: float) -> float:
    """Cosine law with a glossy lobe beside it; 1 where the ray meets the surface squarely."""
    if gloss <= 0.0:
        return cosine
    lobe = max(0.0, 2.0 * cosine * cosine - 1.0) ** _GLOSS_EXPONENT
    return (1.0 - gloss) * cosine + gloss * lobe


@inlined_kernel
def mirrored_share(straight: float, cosine: float) -> float:
    """Share of a ray's light that a surface reflects as a mirror, one way; ``straight`` is that of a ray that meets it squarely."""
    return straight + (1.0 - straight) * (1.0 - min(cosine, 1.0)) ** 5 if straight > 0.0 else 0.0


@inlined_kernel
def returned(reflectivity: float, gloss: float, cosine: float, texture: float, noise: float) -> float:
    """Light that a surface returns of a ray, relative to a white matt wall that the ray meets squarely, without its mirror image.

    ``noise`` is the ``texture_noise``.
    """
    light = reflectivity * _lit(gloss, cosine)
    if texture > 0.0:
        tangent = math.sqrt(max(1.0 - cosine * cosine, 0.0)) / max(cosine, _FLATTEST)
        light *= max(_DARKEST, 1.0 + texture * (1.0 + _RELIEF * tangent) * noise)
    return light


@kernel
def returned_by_all(reflectivity: Doubles, gloss: Doubles, cosine: Doubles, texture: Doubles, noise: Doubles) -> Doubles:
    """``returned`` of sixteen rays, bit by bit (tested)."""
    lit = cosine
    if bits_of(gloss > 0.0) != 0:
        lobe = greater_lanes(2.0 * cosine * cosine - 1.0, 0.0)
        fourth = lobe * lobe * (lobe * lobe)
        eighth = fourth * fourth
        lit = select(gloss > 0.0, (1.0 - gloss) * cosine + gloss * (fourth * (eighth * eighth)), cosine)
    light = reflectivity * lit
    tangent = roots(greater_lanes(1.0 - cosine * cosine, 0.0)) / greater_lanes(cosine, _FLATTEST)
    return select(texture > 0.0, light * greater_lanes(1.0 + texture * (1.0 + _RELIEF * tangent) * noise, _DARKEST), light)
