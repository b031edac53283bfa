"""``make quick`` takes the tests that a change can reach, nearest first, and lists what it leaves out."""

import pytest

from tests.runs import quick

REACHED_BY = {
    "hilsim.angles": {"hilsim.scans", "tests.unit.angles.test_angles"},
    "hilsim.scans": {"hilsim.cli", "tests.unit.scans.test_scans", "tests.helper"},
    "hilsim.cli": {"tests.unit.cli.test_cli"},
    "tests.helper": {"tests.unit.helped.test_helped"},
}
NEAREST_FIRST = [
    "tests/unit/angles/test_angles.py",
    "tests/unit/scans/test_scans.py",
    "tests/unit/cli/test_cli.py",
    "tests/unit/helped/test_helped.py",
]


def choose(*paths, budget_s=1000.0, seconds=None):
    return quick.choose(paths, budget_s=budget_s, seconds=seconds or {}, reached_by=REACHED_BY)


def test_tests_are_taken_in_the_order_of_their_distance_from_the_change():
    assert choose("hilsim/angles.py").taken == NEAREST_FIRST


def test_a_change_reaches_no_test_below_it():
    assert choose("hilsim/cli.py").taken == ["tests/unit/cli/test_cli.py"]


def test_a_changed_test_is_its_own_choice():
    assert choose("tests/unit/scans/test_scans.py").taken == ["tests/unit/scans/test_scans.py"]


def test_a_changed_helper_reaches_the_tests_that_import_it():
    assert choose("tests/helper.py").taken == ["tests/unit/helped/test_helped.py"]


def test_what_takes_too_long_is_left_out():
    choice = choose("hilsim/angles.py", budget_s=quick._START_S + 10.0, seconds=dict.fromkeys(NEAREST_FIRST, 8.0))
    assert choice.taken == NEAREST_FIRST[:2]
    assert choice.left_out == NEAREST_FIRST[2:]


def test_files_that_no_import_leads_to_are_listed():
    assert choose("Makefile", "hilsim/cli.py").unmapped == ["Makefile"]


def test_pages_bring_their_own_tests():
    assert choose("docs/index.md").taken == list(quick._PAGES)


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("hilsim.rangefinders.sf45", "tests.unit.rangefinders"),
        ("hilsim.render.cast", "tests.unit.render.test_cast"),
        ("hilsim.analysis.decode", "tests.unit.analysis.test_decode"),
    ],
)
def test_real_modules_reach_the_tests_of_their_packages_at_once(module, test):
    near = [name for name, hops in quick.distances([module], quick.importers()).items() if hops <= 2]
    assert any(name.startswith(test) for name in near), near


def test_a_test_that_may_not_begin_is_reported_as_left_out(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.unit.test_a" time="1.5"/><testcase classname="tests.unit.test_b" time="2">'
        f'<skipped message="{quick.NO_TIME}"/></testcase></testsuite></testsuites>'
    )
    assert quick.read_report(report) == ({"tests/unit/test_a.py": 1.5}, ["tests/unit/test_b.py"])
