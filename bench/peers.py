"""Other ray casters over the same triangles, for ``bench_render.py``: each is optional, and reported where it is missing."""

import importlib.util

import numpy as np

MISSING = {"open3d": "pip install open3d", "embreex": "pip install embreex", "pybullet": "pip install pybullet", "warp": "pip install warp-lang"}


def missing():
    """Peers that are not installed, and how they are."""
    return {name: how for name, how in MISSING.items() if importlib.util.find_spec(name) is None}


def soup(world):
    """A world's triangles, which must all stand still in one tile: vertices ``float32[3 m, 3]`` and their numbers ``uint32[m, 3]``."""
    if world.tile_count != 1 or len(world.key_first):
        raise ValueError(f"world must be one tile without movers, got {world.tile_count} tiles and {len(world.key_first)} movers")
    first, one, other = world.corners[:, :3], world.corners[:, 3:6], world.corners[:, 6:]
    vertices = np.stack([first, first + one, first + other], axis=1).reshape(-1, 3) + world.geometry_origin_m[0].astype(np.float32)
    return vertices.astype(np.float32), np.arange(len(vertices), dtype=np.uint32).reshape(-1, 3)


def _open3d(vertices, numbers, origin, direction):
    import open3d as o3d  # noqa: PLC0415 - optional

    scene = o3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(o3d.core.Tensor(vertices), o3d.core.Tensor(numbers))
    rays = o3d.core.Tensor(np.concatenate([origin.astype(np.float32), direction], axis=1))
    return lambda: scene.cast_rays(rays, nthreads=1)


def _embreex(vertices, numbers, origin, direction):
    from embreex.mesh_construction import TriangleMesh  # noqa: PLC0415 - optional
    from embreex.rtcore_scene import EmbreeScene  # noqa: PLC0415 - optional

    scene = EmbreeScene()
    TriangleMesh(scene, vertices[numbers.astype(int)])
    begin = origin.astype(np.float32)
    return lambda: scene.run(begin, direction, query="DISTANCE")


def _pybullet(vertices, numbers, origin, direction):
    import pybullet  # noqa: PLC0415 - optional

    client = {"physicsClientId": pybullet.connect(pybullet.DIRECT)}
    for begin in range(0, len(numbers), 40_000):  # as many triangles as one of its meshes takes
        part = numbers[begin : begin + 40_000]
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_MESH, vertices=vertices[part.reshape(-1).astype(int)].tolist(), indices=list(range(part.size)), flags=1, **client
        )
        pybullet.createMultiBody(0, shape, **client)
    few = slice(0, len(origin), max(len(origin) // 4000, 1))  # it takes milliseconds a thousand
    begin, end = origin[few].tolist(), (origin[few] + 200.0 * direction[few]).tolist()
    chunks = [slice(at, at + 8000) for at in range(0, len(begin), 8000)]  # it takes no more at once

    def run():
        for chunk in chunks:
            pybullet.rayTestBatch(begin[chunk], end[chunk], numThreads=1, **client)
        return len(begin)

    return run


def _warp(vertices, numbers, origin, direction):
    import warp as wp  # noqa: PLC0415 - optional

    wp.config.quiet = True
    mesh = wp.Mesh(
        points=wp.array(vertices, dtype=wp.vec3, device="cpu"), indices=wp.array(numbers.astype(np.int32).reshape(-1), dtype=int, device="cpu")
    )

    @wp.kernel
    def cast(mesh_id: wp.uint64, begin: wp.array(dtype=wp.vec3), ahead: wp.array(dtype=wp.vec3), found: wp.array(dtype=float)):
        ray = wp.tid()
        query = wp.mesh_query_ray(mesh_id, begin[ray], ahead[ray], 200.0)
        found[ray] = wp.inf
        if query.result:
            found[ray] = query.t

    begin = wp.array(origin.astype(np.float32), dtype=wp.vec3, device="cpu")
    ahead = wp.array(direction, dtype=wp.vec3, device="cpu")
    found = wp.empty(len(direction), dtype=float, device="cpu")
    return lambda: wp.launch(cast, len(direction), [mesh.id, begin, ahead, found], device="cpu")


_CASTERS = {"open3d": _open3d, "embreex": _embreex, "pybullet": _pybullet, "warp": _warp}


def casters(world, origin, direction):
    """What casts these rays into this world, by name; a caster returns its ranges, or the number of rays where it casts fewer."""
    vertices, numbers = soup(world)
    return {name: make(vertices, numbers, origin, direction) for name, make in _CASTERS.items() if name not in missing()}


def warp_on_gpu(world, origin, direction, reach_m):
    """Calls that cast these rays with Warp on the first GPU, by name: with rays and ranges resident, and with both copied; empty without Warp."""
    if "warp" in missing():
        return {}
    import warp as wp  # noqa: PLC0415 - optional

    wp.config.quiet = True
    vertices, numbers = soup(world)
    mesh = wp.Mesh(
        points=wp.array(vertices, dtype=wp.vec3, device="cuda"), indices=wp.array(numbers.astype(np.int32).reshape(-1), dtype=int, device="cuda")
    )
    count = len(direction)
    on_host = [wp.array(rays.astype(np.float32), dtype=wp.vec3, device="cpu", pinned=True) for rays in (origin, direction)]
    there = [wp.empty(count, dtype=wp.vec3, device="cuda") for _ in on_host]
    ranges, found = wp.empty(count, dtype=float, device="cpu", pinned=True), wp.empty(count, dtype=float, device="cuda")

    @wp.kernel
    def cast(mesh_id: wp.uint64, begin: wp.array(dtype=wp.vec3), ahead: wp.array(dtype=wp.vec3), most: float, found: wp.array(dtype=float)):
        ray = wp.tid()
        query = wp.mesh_query_ray(mesh_id, begin[ray], ahead[ray], most)
        found[ray] = wp.inf
        if query.result:
            found[ray] = query.t

    def resident():
        wp.launch(cast, count, [mesh.id, *there, reach_m, found], device="cuda")
        wp.synchronize_device("cuda")

    def copied():
        for target, source in zip(there, on_host, strict=True):
            wp.copy(target, source)
        wp.launch(cast, count, [mesh.id, *there, reach_m, found], device="cuda")
        wp.copy(ranges, found)
        wp.synchronize_device("cuda")

    copied()
    return {"warp": resident, "warp, copied": copied}
