"""Objects of a simple shape, as frozen values that own their rules."""

from collections.abc import Iterator
from dataclasses import dataclass

from hilsim.scene.object_specs import ObjectSpec, Rule, Vector, sized, tessellation
from hilsim.scene.primitives import capsule_triangles, cone_triangles, cylinder_triangles, sphere_triangles

TOLERANCE_M = 0.001


@dataclass(frozen=True, kw_only=True)
class PlaneSpec(ObjectSpec):
    """A rectangle facing up, centred on its position; both sides reflect.

    Attributes:
        size_m: Along x and y.
    """

    size_m: tuple[float, float]

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class BoxSpec(ObjectSpec):
    """A box centred on its position.

    Attributes:
        size_m: Along x, y and z.
    """

    size_m: Vector

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class UprightSpec(ObjectSpec):
    """What is round about z, half its height on either side of its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of its base.
        height_m: Along z, centred on its own zero.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    height_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield sized("height_m", self.height_m)


@dataclass(frozen=True, kw_only=True)
class CylinderSpec(UprightSpec):
    """An upright cylinder with both caps, centred on its position; flats stay within ``tolerance_m`` of the true surface."""

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield from tessellation(self.radius_m, self.tolerance_m, cylinder_triangles)


@dataclass(frozen=True, kw_only=True)
class ConeSpec(UprightSpec):
    """An upright cone with its tip up, half its height on either side of its position; flats stay within ``tolerance_m`` of the true surface."""

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield from tessellation(self.radius_m, self.tolerance_m, cone_triangles)


@dataclass(frozen=True, kw_only=True)
class SphereSpec(ObjectSpec):
    """A sphere centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of the sphere.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield from tessellation(self.radius_m, self.tolerance_m, sphere_triangles)


@dataclass(frozen=True, kw_only=True)
class CapsuleSpec(ObjectSpec):
    """An upright cylinder with a half sphere at each end, centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of the cylinder and the ends.
        length_m: Along z, without the ends.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    length_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("radius_m", self.radius_m)
        yield sized("length_m", self.length_m)
        yield from tessellation(self.radius_m, self.tolerance_m, capsule_triangles)


@dataclass(frozen=True, kw_only=True)
class EllipsoidSpec(ObjectSpec):
    """An ellipsoid centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radii_m: Along x, y and z.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radii_m: Vector
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield sized("radii_m", *self.radii_m)
        yield from tessellation(max(self.radii_m), self.tolerance_m, sphere_triangles)
