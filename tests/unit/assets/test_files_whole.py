"""Generated files of every format against what was written into them: no face, height or pose is lost, moved or invented.

Meshes are compared by area and first moment of their surface, which the generator knows from its polygons before any file is written.
"""

import base64
import json
import struct
import zlib

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hilsim.errors import AssetError
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.assets.terrain import load_terrain
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.scene.object_specs import MeshSpec, TerrainSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.sdf.reading import read_sdf

SEEDS = pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 1000), marks=pytest.mark.extended)], ids=["few", "many"])


# -- surfaces ----------------------------------------------------------------------------------------------------------------------------


def outline(rng, count):
    """A polygon about the origin, mostly concave: its corners, its area and its centroid times the area, by the shoelace formula."""
    angle = 2.0 * np.pi * (np.arange(count) + rng.uniform(-0.2, 0.2, count)) / count  # never half a turn apart, so that it does not cross itself
    x, y = rng.uniform(0.2, 3.0, count) * np.array([np.cos(angle), np.sin(angle)])
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    moment = [((values + np.roll(values, -1)) * cross).sum() / 6.0 for values in (x, y)]
    return np.stack([x, y], axis=-1), 0.5 * cross.sum(), np.array(moment)


def polygons(rng, most=9):
    """Polygons in space: corners of each, a point of each from which all its corners are seen, whole area, whole first moment."""
    faces, middles, area, moment = [], [], 0.0, np.zeros(3)
    for _ in range(rng.integers(1, 8)):
        flat, inside, first = outline(rng, int(rng.integers(3, most + 1)))
        turn, shift = Rotation.random(rng=rng).as_matrix(), rng.uniform(-20.0, 20.0, 3)
        faces.append(np.pad(flat, ((0, 0), (0, 1))) @ turn.T + shift)
        middles.append(shift)
        area, moment = area + inside, moment + turn[:, :2] @ first + inside * shift
    return faces, middles, area, moment


def assert_surface(mesh, area, moment, tolerance):
    corners = mesh.vertices_m[mesh.triangles]
    each = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    np.testing.assert_allclose(each.sum(), area, rtol=tolerance)
    np.testing.assert_allclose(each @ corners.mean(axis=1), moment, rtol=tolerance, atol=tolerance * 20.0 * area)


def numbered(faces):
    ends = np.cumsum([len(face) for face in faces])
    return np.concatenate(faces), [list(range(end - len(face), end)) for face, end in zip(faces, ends, strict=True)]


def obj(rng, path, faces, _):
    lines, count, before = ["# a wall"], 0, rng.random() < 0.5
    vertices, rows = numbered(faces)
    if before:
        lines += [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()]
        count = len(vertices)
    for row, face in zip(rows, faces, strict=True):
        if not before:
            lines += [f"v {x!r} {y!r} {z!r} 1 0 0" for x, y, z in face.tolist()]
            count += len(face)
        style = rng.choice(["{}", "{}/1", "{}//1", "{}/1/1"])
        lines.append("f " + (" \\\n" if rng.random() < 0.2 else " ").join(style.format(k - count if rng.random() < 0.5 else k + 1) for k in row))
        lines += [f"usemtl Material #{count}"] if rng.random() < 0.5 else ["# f 1 2 3", "mtllib gone.mtl"]
    text = str(rng.choice(["\n", "\r\n"])).join(lines) + "\n"
    path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.5 else b"") + text.encode())
    return 1e-9


def ply(rng, path, faces, _):
    order, number = rng.choice(["ascii", "binary_little_endian", "binary_big_endian"]), rng.choice(["float", "double"])
    sign = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[order]
    lengths, index = rng.choice(["uchar", "ushort", "int32"]), rng.choice(["int", "uint32", "short"])
    codes = {"uchar": "B", "ushort": "H", "int32": "i", "int": "i", "uint32": "I", "short": "h", "float": "f", "double": "d"}
    vertices, rows = numbered(faces)
    strips = [row for row in rows if len(row) == 3 and rng.random() < 0.7]
    rows = [row for row in rows if row not in strips]
    tables = [
        (
            "vertex",
            ["uchar flags", *(f"{number} {axis}" for axis in "xyz")],
            [("B" + 3 * codes[number], [7, *vertex]) for vertex in vertices.tolist()],
        )
    ]
    held = [(codes[lengths] + len(row) * codes[index] + "f", [len(row), *row, 0.5]) for row in rows]
    tables += [("face", [f"list {lengths} {index} {rng.choice(['vertex_index', 'vertex_indices'])}", "float quality"], held)]
    if strips:
        chain = [corner for strip in strips for corner in (*strip, -1)]
        tables.append(("tristrips", ["list int int vertex_indices"], [("i" * (len(chain) + 1), [len(chain), *chain])]))
    elements = [f"element {name} {len(held)}\n" + "".join(f"property {each}\n" for each in properties) for name, properties, held in tables]
    head = f"ply\nformat {order} 1.0\ncomment wall\n{''.join(elements)}end_header\n".encode()
    values = [row for _, _, held in tables for row in held]
    text = "".join(" ".join(map(repr, row)) + "\n" for _, row in values).encode()
    path.write_bytes(head + (b"".join(struct.pack(sign + kind, *row) for kind, row in values) if sign else text))
    return 1e-9 if number == "double" or not sign else 1e-5


def stl(rng, path, faces, _):
    triangles = faces
    if rng.random() < 0.5:
        text = "".join(
            "facet normal 0 0 0\n outer loop\n" + "".join(f"  vertex {x!r} {y!r} {z!r}\n" for x, y, z in part.tolist()) + " endloop\nendfacet\n"
            for part in triangles
        )
        path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.5 else b"") + f"solid a\n{text}endsolid a\n".encode())
        return 1e-9
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *part.reshape(-1), 0) for part in triangles)
    path.write_bytes(b"solid or not".ljust(80) + struct.pack("<I", len(triangles)) + rows + bytes(int(rng.integers(0, 50))))
    return 1e-5


def dae(rng, path, faces, _):
    vertices, rows = numbered(faces)
    at = '<input semantic="VERTEX" source="#v" offset="0"/>'
    kinds = {"polylist": [], "polygons": [], "triangles": [], "tristrips": [], "trifans": []}
    for row in rows:
        kinds[str(rng.choice(list(kinds) if len(row) == 3 else ["polylist", "polygons"]))].append(" ".join(map(str, row)))
    parts = "".join(
        f'<{kind} count="{len(held)}">{at}'
        + (f"<vcount>{' '.join(str(len(row.split())) for row in held)}</vcount>" if kind == "polylist" else "")
        + ("".join(f"<p>{row}</p>" for row in held) if kind in {"polygons", "tristrips", "trifans"} else f"<p>{' '.join(held)}</p>")
        + f"</{kind}>"
        for kind, held in kinds.items()
        if held
    )
    numbers = " ".join(repr(value / 0.01) for value in vertices.reshape(-1).tolist())
    path.write_text(f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2026-01-01T00:00:00</created><modified>2026-01-01T00:00:00</modified><unit meter="0.01"/></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa" count="{vertices.size}">{numbers}</float_array>
<technique_common><accessor source="#pa" count="{len(vertices)}" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source><vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{parts}
</mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""")
    return 1e-5  # pycollada keeps 24 bits


def gltf(rng, path, faces, middles):
    """Each polygon as a list, a strip or a fan of triangles about its middle, in a node of its own, which undoes a shift."""
    document = {"asset": {"version": "2.0"}, "accessors": [], "bufferViews": [], "buffers": [], "meshes": [], "nodes": []}
    blob, is_binary = bytearray(), path.suffix == ".glb"

    def accessor(values, kind, component):
        data = np.ascontiguousarray(values, kind)
        document["bufferViews"].append({"buffer": 0, "byteOffset": len(blob), "byteLength": data.nbytes})
        shape = {"type": "VEC3", "min": data.min(0).tolist(), "max": data.max(0).tolist()} if data.ndim > 1 else {"type": "SCALAR"}
        document["accessors"].append({"bufferView": len(document["bufferViews"]) - 1, "componentType": component, "count": len(data), **shape})
        blob.extend(data.tobytes() + bytes(-data.nbytes % 4))
        return len(document["accessors"]) - 1

    for face, middle in zip(faces, middles, strict=True):
        mode, shift = int(rng.choice([4, 5, 6])), rng.uniform(-5.0, 5.0, 3)
        kind, component = [("<u1", 5121), ("<u2", 5123), ("<u4", 5125)][rng.integers(3)]
        vertices, after = np.stack([middle, *face]) - shift, [*range(2, len(face) + 1), 1]
        chains = {4: [(0, k + 1, after[k]) for k in range(len(face))], 5: [(k + 1, 0, after[k], after[k]) for k in range(len(face))]}
        chain = np.array([0, *range(1, len(face) + 1), 1] if mode == 6 else chains[mode]).reshape(-1)
        is_indexed = rng.random() < 0.7
        primitive = {"mode": mode, "attributes": {"POSITION": accessor(vertices if is_indexed else vertices[chain], "<f4", 5126)}}
        if is_indexed:
            primitive["indices"] = accessor(chain, kind, component)
        primitives = [primitive, {"mode": 1, "attributes": primitive["attributes"]}][: int(rng.integers(1, 3))]
        document["meshes"].append({"name": "wall", "primitives": primitives})
        node = {"name": "Cube", "mesh": len(document["meshes"]) - 1} | ({"camera": 0} if rng.random() < 0.2 else {})
        turn = Rotation.from_quat(rng.normal(size=4))
        parent = {"translation": shift.tolist(), "rotation": turn.as_quat().tolist(), "children": [len(document["nodes"])]}
        back = np.eye(4)
        back[:3, :3] = turn.inv().as_matrix()
        document["nodes"] += [node | {"matrix": back.T.reshape(-1).tolist()}, parent]
    document["cameras"] = [{"type": "perspective", "perspective": {"yfov": 1.0, "znear": 0.1}}]
    if rng.random() < 0.7:
        document["scenes"] = [{"nodes": []}, {"nodes": list(range(1, len(document["nodes"]), 2))}]
        document["scene"] = 1
    document["buffers"].append({"byteLength": len(blob)})
    if is_binary:
        text = json.dumps(document).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
        path.write_bytes(b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks)
        return 1e-4
    is_beside = rng.random() < 0.5
    document["buffers"][0]["uri"] = "my%20wall%231.bin" if is_beside else "data:application/octet-stream;base64," + base64.b64encode(blob).decode()
    (path.parent / "my wall#1.bin").write_bytes(blob)
    path.write_text(json.dumps(document))
    return 1e-4


@SEEDS
@pytest.mark.parametrize(
    ("write", "suffix", "most"), [(obj, "obj", 9), (ply, "ply", 9), (stl, "stl", 3), (dae, "dae", 9), (gltf, "gltf", 9), (gltf, "glb", 9)]
)
def test_a_mesh_has_the_surface_that_was_written(tmp_path, write, suffix, most, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        faces, middles, area, moment = polygons(rng, most)
        tolerance = write(rng, tmp_path / f"a.{suffix}", faces, middles)
        mesh, _ = load_mesh(MeshSpec(file=f"a.{suffix}", up="z"), tmp_path, BUILT_IN_MATERIALS)
        assert_surface(mesh, area, moment, tolerance)


# -- heights -----------------------------------------------------------------------------------------------------------------------------


def tiff(rng, path, values, missing, marker):
    """A GeoTIFF by hand: either byte order, BigTIFF, strips or tiles, raw or deflated with a predictor, a second band, declared missing data."""
    kind, order, is_big = values.dtype, str(rng.choice(["<", ">"])), rng.random() < 0.3
    predictor = int(rng.choice([1, 2, 3] if kind.kind == "f" else [1, 2]))
    is_deflated, side, bands = predictor > 1 or rng.random() < 0.5, int(rng.choice([0, 16])), 1 if predictor > 1 else int(rng.choice([1, 1, 2]))
    rows, columns = values.shape

    def packed(block):
        block = np.repeat(block[..., np.newaxis], bands, axis=-1)
        if predictor == 2:
            whole = block.view(f"u{kind.itemsize}")
            block = np.concatenate([whole[:, :1], whole[:, 1:] - whole[:, :-1]], axis=1).astype(f"{order}u{kind.itemsize}")
        elif predictor == 3:
            planes = block[..., 0].astype(kind.newbyteorder(">")).view("u1").reshape(*block.shape[:2], -1).transpose(0, 2, 1).reshape(len(block), -1)
            block = np.concatenate([planes[:, :1], planes[:, 1:] - planes[:, :-1]], axis=1)
        data = block.astype(block.dtype.newbyteorder(order)).tobytes()
        return zlib.compress(data) if is_deflated else data

    height, width = (side, side) if side else (int(rng.integers(1, rows + 1)), columns)
    padded = np.pad(values, ((0, -rows % side), (0, -columns % side)), mode="edge") if side else values
    blocks = [packed(padded[y : y + height, x : x + width]) for y in range(0, rows, height) for x in range(0, columns, width)]
    offsets = np.cumsum([16, *map(len, blocks)])
    wide = "Q" if is_big else "I"
    layout = [(322, "H", [side]), (323, "H", [side])] if side else [(278, "H", [height])]
    entries = [
        (256, "H", [columns]),
        (257, "H", [rows]),
        (258, "H", [8 * kind.itemsize] * bands),
        (259, "H", [8 if is_deflated else 1]),
        (262, "H", [1]),
    ]
    entries += [(277, "H", [bands]), (284, "H", [1]), (317, "H", [predictor]), (339, "H", ["uif".index(kind.kind) + 1] * bands), *layout]
    entries += [(324 if side else 273, wide, offsets[:-1].tolist()), (325 if side else 279, wide, [len(block) for block in blocks])]
    entries += [
        (33550, "d", [2.0, 3.0, 0.0]),
        (33922, "d", [0, 0, 0, 691000.0, 5334000.0, 0]),
        (34735, "H", [1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32632]),
    ]
    entries += [(42113, "s", [f"{marker:g}".encode() + b"\0"])] if missing.any() else []
    body, held, at = b"".join(blocks), b"", int(offsets[-1])
    table = struct.pack(order + ("Q" if is_big else "H"), len(entries))
    for tag, code, numbers in sorted(entries):
        data = numbers[0] if code == "s" else struct.pack(f"{order}{len(numbers)}{code}", *numbers)
        count, room = (len(data) if code == "s" else len(numbers)), (8 if is_big else 4)
        place = data.ljust(room, b"\0") if len(data) <= room else struct.pack(order + wide, at + len(held))
        held += b"" if len(data) <= room else data
        table += struct.pack(f"{order}HH{wide}", tag, {"s": 2, "H": 3, "I": 4, "d": 12, "Q": 16}[code], count) + place
    start = struct.pack(f"{order}HHHQ", 43, 8, 0, at + len(held)) if is_big else struct.pack(f"{order}HI", 42, at + len(held)) + bytes(8)
    path.write_bytes((b"II" if order == "<" else b"MM") + start + body + held + table + bytes(8))


@SEEDS
def test_a_geotiff_has_the_heights_that_were_written(tmp_path, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kind = np.dtype(str(rng.choice(["i2", "u2", "i4", "u4", "f4", "f8"])))
        rows, columns = rng.integers(2, 40, 2)
        values = rng.uniform(0.0 if kind.kind == "u" else -400.0, 4000.0, (rows, columns)).astype(kind)
        missing = (rng.random((rows, columns)) < 0.1) & (rng.random() < 0.5) & ~np.eye(rows, columns, dtype=bool)
        marker = float(rng.choice({"u": [0, 65535], "i": [-9999, 32767], "f": [-9999, 1e20, np.nan]}[kind.kind]))
        values[missing] = marker
        missing |= (values == marker) & missing.any()
        tiff(rng, tmp_path / "a.tif", values, missing, marker)
        a, b, c, d = missing[:-1, :-1], missing[:-1, 1:], missing[1:, :-1], missing[1:, 1:]
        expected = int((~(c | d | b)).sum() + (~(c | b | a)).sum())
        spec = TerrainSpec(file="a.tif", georeferenced=True)
        if not expected:
            with pytest.raises(AssetError, match="must have at least one triangle of heights"):
                load_terrain(spec, tmp_path, BUILT_IN_MATERIALS)
            continue
        mesh, notes = load_terrain(spec, tmp_path, BUILT_IN_MATERIALS)
        x, y = np.meshgrid(691001.0 + 2.0 * np.arange(columns), 5333998.5 - 3.0 * np.arange(rows))
        np.testing.assert_array_equal(mesh.vertices_m, np.stack([x, y, np.where(missing, 0.0, values.astype(float))], axis=-1).reshape(-1, 3))
        assert not missing.reshape(-1)[mesh.triangles].any()
        assert len(mesh.triangles) == expected
        assert any("are missing" in note for note in notes) == missing.any()


# -- poses -------------------------------------------------------------------------------------------------------------------------------


@SEEDS
def test_a_trajectory_has_the_poses_that_were_written(tmp_path, seeds):
    camera = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    for seed in seeds:
        rng = np.random.default_rng(seed)
        count, kind = int(rng.integers(2, 9)), str(rng.choice(["csv", "euroc", "tum", "kitti"]))
        time_ns = np.cumsum(rng.integers(1, 10**9, count))
        position, turn = rng.uniform(-1000.0, 1000.0, (count, 3)), Rotation.random(count, rng=rng)
        rows = list(zip(time_ns.tolist(), position.tolist(), turn.as_quat().tolist(), strict=True))
        path = tmp_path / f"way.{'csv' if kind in {'csv', 'euroc'} else 'txt'}"
        if kind == "kitti":
            matrices = np.concatenate([camera @ turn.as_matrix() @ camera.T, (position @ camera.T)[:, :, np.newaxis]], axis=-1)
            path.write_text("".join(" ".join(map(repr, matrix)) + "\n" for matrix in matrices.reshape(-1, 12).tolist()))
            (tmp_path / "times.txt").write_text("".join(f"{time // 10**9}.{time % 10**9:09d}\n" for time in time_ns.tolist()))
        elif kind == "tum":
            path.write_text("".join(f"{time // 10**9}.{time % 10**9:09d} {' '.join(map(repr, [*at, *q]))}\n" for time, at, q in rows))
        else:
            head = "#timestamp [ns], p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []"
            body = "".join(f"{time},{','.join(map(repr, [*at, q[3], *q[:3]]))}\n" for time, at, q in rows)
            path.write_text((head if kind == "euroc" else "time_ns,x_m,y_m,z_m,qw,qx,qy,qz") + "\n" + body)
        track = load_trajectory(path, start_at_zero=False)
        assert track.time_ns.tolist() == time_ns.tolist()
        np.testing.assert_allclose(track.position_m, position, rtol=1e-12, atol=1e-9)
        found = np.array([matrix_from_quaternion(tuple(q)) for q in track.orientation.tolist()])
        np.testing.assert_allclose(found, turn.as_matrix(), atol=1e-9)


@SEEDS
def test_a_world_has_the_surface_of_its_polylines_and_the_poses_of_its_robot(tmp_path, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        flat, area, moment = outline(rng, int(rng.integers(3, 10)))
        height = float(rng.uniform(0.5, 5.0))
        points = "".join(f"<point>{x!r} {y!r}</point>" for x, y in flat.tolist())
        shape = f"<collision name='c'><geometry><polyline>{points}<height>{height!r}</height></polyline></geometry></collision>"
        (tmp_path / "a.sdf").write_text(f"<sdf version='1.9'><model name='m'><link name='l'>{shape}</link></model></sdf>")
        ((thing,), _) = sdf_objects(read_sdf(tmp_path / "a.sdf"), BUILT_IN_MATERIALS)
        sides = np.linalg.norm(np.roll(flat, -1, axis=0) - flat, axis=1)
        middle = (0.5 * (flat + np.roll(flat, -1, axis=0)) * sides[:, np.newaxis]).sum(axis=0) * height
        whole = 2.0 * area + sides.sum() * height
        assert_surface(thing.mesh, whole, np.array([*(2.0 * moment + middle), 0.5 * height * whole]), 1e-9)

        text, expected = "<robot name='r'>", []
        for number in range(int(rng.integers(1, 7))):
            origin, angles = rng.uniform(-2.0, 2.0, 3), rng.uniform(-1.5, 1.5, 3)
            own = np.block([[Rotation.from_euler("xyz", angles).as_matrix(), origin[:, np.newaxis]], [np.zeros((1, 3)), np.ones((1, 1))]])
            place = f"<origin xyz='{' '.join(map(repr, origin.tolist()))}' rpy='{' '.join(map(repr, angles.tolist()))}'/>"
            parent = int(rng.integers(0, number)) if number else None
            if parent is not None:
                text += f"<joint name='j{number}' type='revolute'>{place}<parent link='l{parent}'/><child link='l{number}'/></joint>"
            expected.append(np.eye(4) if parent is None else expected[parent] @ own)
            text += f"<link name='l{number}'><collision><geometry><sphere radius='{number + 1}'/></geometry></collision></link>"
        (tmp_path / "a.urdf").write_text(text + "</robot>")
        shapes = {round(shape.radii_m[0]) - 1: shape.pose for shape in read_sdf(tmp_path / "a.urdf").collisions}
        for number, pose in enumerate(expected):
            np.testing.assert_allclose(shapes[number].position_m, pose[:3, 3], atol=1e-9)
            np.testing.assert_allclose(matrix_from_quaternion(shapes[number].orientation), pose[:3, :3], atol=1e-9)
