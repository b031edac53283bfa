"""Colours of a mesh file: the brightness of each triangle, from its vertices, its face or the image laid over it.

Brightness is the linear luminance of sRGB colours (IEC 61966-2-1). A laser of 905 nm sees what the eye does not, so only the differences within one material are used.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.world.scene.materials import DIFFUSE_MAX, Material

PATCH_M = 0.25
"""Longest side, in the file's units, to which triangles under an image are divided."""
_MAX_TRIANGLES = 200_000
"""Beyond which they are not divided further."""
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
_SAMPLES = 4
"""Places along a triangle's side at which its image is sampled."""
_HALVES = ((0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5))


def _luminance(colours: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Linear luminance, 0 to 1, of sRGB colours ``uint8[..., 3 or more]``."""
    share = np.asarray(colours)[..., :3] / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ _LUMINANCE, dtype=np.float64)


def _image_of(visual: Any) -> Any:
    material = getattr(visual, "material", None)
    return getattr(material, "baseColorTexture", None) or getattr(material, "image", None)


def coloured(
    geometry: Any, vertices: npt.NDArray[np.float64], triangles: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """Vertices, triangles and the brightness ``float64[m]`` of each; triangles under an image are divided, those without colours have none.

    Args:
        geometry: A mesh of trimesh.
        vertices: ``float64[n, 3]``, its vertices as they are placed.
        triangles: ``int64[m, 3]``.
    """
    visual = getattr(geometry, "visual", None)
    image, uv = _image_of(visual), getattr(visual, "uv", None)
    if image is not None and uv is not None and len(uv) == len(vertices):
        corners = _divided(np.concatenate([vertices, np.asarray(uv, dtype=np.float64)], axis=1)[triangles])
        rows = np.arange(3 * len(corners), dtype=np.int64).reshape(-1, 3)
        return corners[:, :, :3].reshape(-1, 3), rows, _sampled(np.asarray(image.convert("RGB")), corners[:, :, 3:])
    if visual is not None and visual.kind in {"vertex", "face"}:
        return vertices, triangles, _luminance(visual.face_colors)
    return vertices, triangles, None


def _divided(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Triangles ``float64[m, 3, 5]`` (place and place in the image) of which no side is longer than ``PATCH_M``, unless they are too many."""
    while True:
        sides = np.linalg.norm(corners[:, :, :3] - np.roll(corners[:, :, :3], 1, axis=1), axis=2)
        is_long = sides.max(axis=1) > PATCH_M
        if not is_long.any() or len(corners) + 3 * int(is_long.sum()) > _MAX_TRIANGLES:
            return corners
        a, b, c = np.moveaxis(corners[is_long], 1, 0)
        points = np.stack([a, b, c, 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)], axis=1)
        corners = np.concatenate([corners[~is_long], *(points[:, part] for part in _HALVES)])


def _sampled(image: npt.NDArray[np.uint8], uv: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean brightness of an image under triangles ``float64[m, 3, 2]``; v counts from the image's lower edge, and the image repeats."""
    height, width = image.shape[:2]
    bright = _luminance(image)
    steps = (np.arange(_SAMPLES) + 1.0 / 3.0) / _SAMPLES
    weights = np.array([(1.0 - s - t, s, t) for s in steps for t in steps if s + t < 1.0])
    place = np.einsum("sk,mkd->msd", weights, uv) % 1.0
    column = np.minimum((place[..., 0] * width).astype(np.int64), width - 1)
    row = np.minimum(((1.0 - place[..., 1]) * height).astype(np.int64), height - 1)
    return np.asarray(bright[row, column].mean(axis=1), dtype=np.float64)


def shaded(
    rows: npt.NDArray[np.int64], materials: tuple[Material, ...], brightness: npt.NDArray[np.float64], area_m2: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], tuple[Material, ...]]:
    """Materials of triangles whose reflectivity follows their brightness, relative to the mean over the triangles of one material.

    Args:
        rows: ``int64[m]``, material of each triangle.
        materials: The materials.
        brightness: ``float64[m]``; NaN for a triangle without a colour, which keeps its material.
        area_m2: ``float64[m]``.
    """
    shades: dict[Material, int] = {material: number for number, material in enumerate(dict.fromkeys(materials))}
    result = np.array([shades[material] for material in materials], dtype=np.int64)[rows]
    for number, material in enumerate(materials):
        chosen = (rows == number) & np.isfinite(brightness)
        weight = area_m2[chosen]
        mean = float(brightness[chosen] @ weight / weight.sum()) if weight.sum() > 0.0 else 0.0
        if mean <= 0.0 or material.is_retro:
            continue
        percent = np.clip(np.rint(material.reflectivity * brightness[chosen] / mean), 0, DIFFUSE_MAX).astype(np.int64)
        numbers = np.zeros(DIFFUSE_MAX + 1, dtype=np.int64)
        for value in np.unique(percent):
            numbers[value] = shades.setdefault(_shade(material, int(value)), len(shades))
        result[chosen] = numbers[percent]
    return result, tuple(shades)


def _shade(material: Material, percent: int) -> Material:
    name = material.name if percent == material.reflectivity else f"{material.name}, {percent} %"
    return Material(**{**vars(material), "name": name, "reflectivity": percent})
