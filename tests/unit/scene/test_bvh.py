"""Trees hold every box once, inside the boxes above it, and stay shallow."""

import numpy as np
import pytest

from hilsim.world.scene import bvh
from hilsim.world.scene.bvh import STACK_SIZE, build_tree


def random_boxes(seed, count, size=1.0):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-100.0, 100.0, (count, 3))
    return np.concatenate([low, low + rng.uniform(0.0, size, (count, 3))], axis=1).astype(np.float32)


def leaves_below(tree, boxes):
    """(rows of boxes in leaves, depth); asserts that each child box is exactly the union of what is below."""
    sorted_boxes = boxes[tree.order]

    def visit(link):
        if link < 0:
            first, count = (-1 - link) >> 3, (-1 - link) & 7
            return list(range(first, first + count)), 0
        rows, depth = [], 0
        for slot in (0, 1):
            below, levels = visit(int(tree.links[link, 12 + slot]))
            if below:
                union = np.concatenate([sorted_boxes[below, :3].min(axis=0), sorted_boxes[below, 3:].max(axis=0)])
                np.testing.assert_array_equal(tree.bounds[link, 6 * slot : 6 * slot + 6], union)
            rows += below
            depth = max(depth, levels)
        return rows, depth + 1

    return visit(0)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 100, 3000])
@pytest.mark.parametrize("leaf_size", [1, 4])
def test_every_box_is_in_one_leaf_and_boxes_fit_exactly(count, leaf_size):
    boxes = random_boxes(count, count)
    tree = build_tree(boxes, leaf_size)
    rows, depth = leaves_below(tree, boxes)
    assert sorted(rows) == list(range(count))
    assert sorted(tree.order.tolist()) == list(range(count))
    assert depth == tree.depth


def test_building_leaves_the_given_boxes_alone():
    boxes = random_boxes(1, 50)
    before = boxes.copy()
    build_tree(boxes)
    np.testing.assert_array_equal(boxes, before)


def test_equal_boxes_are_halved_by_count():
    tree = build_tree(np.tile(np.float32([0, 0, 0, 1, 1, 1]), (1000, 1)))
    assert tree.depth <= 9


def test_boxes_in_geometric_progression_do_not_grow_a_chain_deeper_than_the_stack():
    places = np.float32(1.001) ** np.arange(20000, dtype=np.float32)[:, np.newaxis] * np.float32([1, 0, 0])
    tree = build_tree(np.concatenate([places, places], axis=1))
    assert tree.depth <= STACK_SIZE


def test_nodes_are_whole_cache_lines():
    tree = build_tree(random_boxes(2, 100))
    assert tree.bounds.strides == (64, 4)
    assert tree.bounds.ctypes.data % 64 == 0
    assert tree.links.ctypes.data == tree.bounds.ctypes.data


def test_a_tree_of_random_boxes_is_better_than_halving_by_count():
    boxes = random_boxes(3, 2000, size=0.1)
    assert build_tree(boxes).depth < 24


def test_no_boxes_are_refused():
    with pytest.raises(ValueError, match="boxes must be 1 to"):
        build_tree(np.zeros((0, 6), dtype=np.float32))


def test_boxes_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="boxes must be finite"):
        build_tree(np.full((3, 6), np.nan, dtype=np.float32))


def test_a_leaf_larger_than_its_link_can_say_is_refused():
    with pytest.raises(ValueError, match="leaf_size must be 1 to 7, got 8"):
        build_tree(random_boxes(1, 9), leaf_size=8)


def nodes_below(tree, node):
    """Boxes and leaves of a node and of all below it, whatever the numbers of the nodes."""
    links = [int(link) for link in tree.links[node, 12:14]]
    return [tree.bounds[node, :12].tolist(), *(link if link < 0 else nodes_below(tree, link) for link in links)]


def test_a_tree_that_is_built_in_parts_is_the_tree_built_at_once(monkeypatch):
    boxes = random_boxes(5, 3000)
    whole = build_tree(boxes)
    monkeypatch.setattr(bvh, "_ROWS_FOR_THREADS", 1000)
    parts = build_tree(boxes)
    np.testing.assert_array_equal(parts.order, whole.order)
    assert parts.depth == whole.depth
    assert nodes_below(parts, 0) == nodes_below(whole, 0)
