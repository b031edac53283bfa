"""Mutants are small faults in functions of the pure core, the same for a seed."""

import ast

from tests.runs import mutants

SOURCE = '"""Text: 1 < 2."""\n\nLIMIT = 3\n\n\ndef f(a, b):\n    """Text: 1 + 2."""\n    return a + b if a < 5 else b\n'


def test_operators_comparisons_and_numbers_of_functions_are_changed_and_nothing_else():
    changes = []
    for number in range(3):
        tree = ast.parse(SOURCE)
        places = mutants.sites(tree)
        assert len(places) == 3
        changes.append(mutants.mutate(*places[number]))
        assert ast.unparse(tree) != ast.unparse(ast.parse(SOURCE))
    assert sorted(changes) == ["line 8: 5 -> 6", "line 8: a + b -> a - b", "line 8: a < 5 -> a <= 5"]


def test_there_are_sixty_in_six_packages_and_the_same_for_a_seed():
    first, again = list(mutants.mutants(1)), list(mutants.mutants(1))
    assert first == again
    assert len(first) == 60
    assert {path.parts[1] for path, _, _ in first} == set(mutants.PACKAGES)
    assert all(text != ast.unparse(ast.parse((mutants.ROOT / path).read_text())) for path, text, _ in first)
