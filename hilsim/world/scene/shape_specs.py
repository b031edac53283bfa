"""Objects of a simple shape, as frozen values with their rules."""

from collections.abc import Iterator
from dataclasses import dataclass

from hilsim.world.scene.object_specs import ObjectSpec, Rule, Vector, sized, tessellation
from hilsim.world.scene.primitives import capsule_triangles, cone_triangles, cylinder_triangles, sphere_triangles

TOLERANCE_M = 0.001


@dataclass(frozen=True, kw_only=True)
class PlaneSpec(ObjectSpec):
    """A rectangle facing up, centred on its position; both sides reflect.

    Attributes:
        size_m: Size along x and y.
    """

    size_m: tuple[float, float]

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class BoxSpec(ObjectSpec):
    """A box centred on its position.

    Attributes:
        size_m: Size along x, y and z.
    """

    size_m: Vector

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class UprightSpec(ObjectSpec):
    """A round shape about z, centred on its position; its facets are within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Radius of the base.
        height_m: Height along z.
        tolerance_m: Largest distance of a facet from the true surface.
    """

    radius_m: float
    height_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield sized("height_m", self.height_m)


@dataclass(frozen=True, kw_only=True)
class CylinderSpec(UprightSpec):
    """An upright cylinder with both caps, centred on its position; its facets are within ``tolerance_m`` of the true surface."""

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield from tessellation(self.radius_m, self.tolerance_m, cylinder_triangles)


@dataclass(frozen=True, kw_only=True)
class ConeSpec(UprightSpec):
    """An upright cone, tip up, with its position at half its height; its facets are within ``tolerance_m`` of the true surface."""

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield from tessellation(self.radius_m, self.tolerance_m, cone_triangles)


@dataclass(frozen=True, kw_only=True)
class SphereSpec(ObjectSpec):
    """A sphere centred on its position; its facets are within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Radius of the sphere.
        tolerance_m: Largest distance of a facet from the true surface.
    """

    radius_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield from tessellation(self.radius_m, self.tolerance_m, sphere_triangles)


@dataclass(frozen=True, kw_only=True)
class CapsuleSpec(ObjectSpec):
    """An upright cylinder with a hemisphere at each end, centred on its position; its facets are within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Radius of the cylinder and the hemispheres.
        length_m: Length of the cylinder along z, without the hemispheres.
        tolerance_m: Largest distance of a facet from the true surface.
    """

    radius_m: float
    length_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield sized("length_m", self.length_m)
        yield from tessellation(self.radius_m, self.tolerance_m, capsule_triangles)


@dataclass(frozen=True, kw_only=True)
class EllipsoidSpec(ObjectSpec):
    """An ellipsoid centred on its position; its facets are within ``tolerance_m`` of the true surface.

    Attributes:
        radii_m: Radii along x, y and z.
        tolerance_m: Largest distance of a facet from the true surface.
    """

    radii_m: Vector
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield sized("radii_m", *self.radii_m)
        yield from tessellation(max(self.radii_m), self.tolerance_m, sphere_triangles)
