"""How sensors share a machine, on invented loads and a clock of the test's own."""

import pytest

from hilsim.daemon.streaming.pacing import FifoRule, LeadRule, RaysRule, SensorLoad, fit_rays, fits, nice_for, total_share

SECOND = 1_000_000_000
MS = 1_000_000
WEIGHTS = {0: 1024, 1: 820, 2: 655, 3: 526, 4: 423, 5: 335, 6: 272, 7: 215, 8: 172, 9: 137}


def load(name="roof", share=0.2, rays=7, wanted=7, rendered=377, lost=0, late=0):
    return SensorLoad(
        name=name,
        rate_hz=750.0,
        cost_ns=share * 1e9 / 750.0,
        rays=rays,
        wanted_rays=wanted,
        rendered_packets=rendered,
        lost_packets=lost,
        late_packets=late,
    )


def test_as_many_sensors_are_real_time_as_fit_into_its_share():
    rule = FifoRule(cores=2)

    assert rule.step([load("a", 0.5), load("b", 0.5), load("c", 0.5), load("d", 0.25)], 0) == {"a", "b", "d"}
    assert FifoRule(cores=2).step([load("a", 1.31)], 0) == frozenset()


def test_a_sensor_comes_back_under_real_time_scheduling_only_when_there_has_been_room_for_a_while():
    rule = FifoRule(cores=2)
    heavy, fair, light = ([load("a", 0.6), load("b", share)] for share in (0.8, 0.6, 0.4))

    assert rule.step(heavy, 0) == {"a"}
    assert rule.step(fair, 20 * SECOND) == {"a"}, "between the two limits all stays as it is"
    assert rule.step(light, 21 * SECOND) == {"a"}
    assert rule.step(light, 30 * SECOND) == {"a"}
    assert rule.step(light, 31 * SECOND) == {"a", "b"}
    assert rule.step(fair, 32 * SECOND) == {"a", "b"}


@pytest.mark.parametrize(
    ("sensors", "cores", "fifo_share"), [(1, 2, 0.0), (6, 2, 0.0), (8, 2, 0.0), (16, 2, 0.0), (5, 1, 0.0), (40, 8, 0.0), (3, 2, 1.3), (1, 2, 1.0)]
)
def test_a_busy_process_keeps_a_quarter_of_each_core_by_weight(sensors, cores, fifo_share):
    rendering = WEIGHTS[nice_for(sensors, cores, fifo_share)] * sensors / cores

    assert (1 - fifo_share / cores) * 1024 / (1024 + rendering) >= 0.25


def test_threads_are_no_nicer_than_needed():
    assert nice_for(4, 2) == 0
    assert nice_for(6, 2) == 1
    assert nice_for(8, 2) == 3
    assert nice_for(0, 2, 1.3) == 0


def test_a_lead_may_tolerate_some_late_packets():
    rule = LeadRule(shortest_ns=2 * MS, longest_ns=12 * MS, tolerated_ratio=0.01)

    assert rule.step(load(late=3), 0) == 2 * MS
    assert rule.step(load(late=2, lost=2), 0) == 3 * MS
    assert rule.step(load(rendered=0, lost=377), 0) == 4.5 * MS


def test_a_lead_grows_when_packets_are_late_up_to_its_bound_and_shrinks_slowly_in_quiet():
    rule = LeadRule(shortest_ns=4 * MS, longest_ns=12 * MS)

    assert rule.step(load(), 0) == 4 * MS
    assert rule.step(load(late=1), 1 * SECOND) == 6 * MS
    assert rule.step(load(lost=1), 2 * SECOND) == 9 * MS
    assert rule.step(load(late=3), 3 * SECOND) == 12 * MS
    assert rule.step(load(), 32 * SECOND) == 12 * MS
    assert rule.step(load(), 33 * SECOND) == 10_800_000
    assert [rule.step(load(), (34 + 30 * turn) * SECOND) for turn in range(20)][-1] == 4 * MS


def test_a_sensor_that_loses_packets_gives_up_rays_before_more_are_lost():
    rule = RaysRule(cores=2)

    assert rule.step([load(lost=40)], 0) == {}, "once may be a standstill"
    assert rule.step([load(lost=40)], SECOND // 2) == {"roof": 1}


def test_a_single_standstill_gives_up_no_rays():
    rule = RaysRule(cores=2)

    steps = [rule.step([load(lost=30 if step % 4 == 0 else 0)], step * SECOND // 2) for step in range(100)]

    assert steps == [{}] * 100


def test_the_dearest_of_those_that_lose_gives_up_first_and_others_only_where_those_have_nothing_to_give():
    rule = RaysRule(cores=2)
    loads = [load("a", 0.8, rays=19, wanted=19), load("b", 0.5, lost=40), load("c", 0.3, lost=40)]
    rule.step(loads, 0)
    assert rule.step(loads, SECOND) == {"b": 1}

    rule = RaysRule(cores=2)
    loads = [load("a", 0.8, rays=19, wanted=19), load("b", 0.5, rays=1, lost=40)]
    rule.step(loads, 0)
    assert rule.step(loads, SECOND) == {"a": 7}


def test_a_machine_that_is_too_full_gives_up_rays_even_while_nothing_is_lost():
    rule = RaysRule(cores=2)
    loads = [load(name, 0.66) for name in "abc"]

    rule.step(loads, 0)

    assert rule.step(loads, SECOND) == {"a": 1}


def test_rays_come_back_when_there_has_been_room_for_half_a_minute():
    rule = RaysRule(cores=2)
    rule.step([load(lost=40)], 0)
    rule.step([load(lost=40)], SECOND)
    small = load(share=0.25, rays=1)

    assert rule.step([small], 20 * SECOND) == {}
    assert rule.step([small], 31 * SECOND) == {"roof": 7}


def test_rays_stay_given_up_where_they_would_not_fit():
    rule = RaysRule(cores=2)
    rule.step([load(lost=40)], 0)
    rule.step([load(lost=40)], SECOND)

    assert rule.step([load(share=0.32, rays=1)], 100 * SECOND) == {}, "0.32 of a core for one ray is 0.84 for seven"


def test_rays_that_came_back_in_vain_come_back_after_twice_the_time():
    rule, small, large = RaysRule(cores=2), load(share=0.25, rays=1), load(lost=40)
    for now_s in (0, 1):
        rule.step([large], now_s * SECOND)
    assert rule.step([small], 31 * SECOND) == {"roof": 7}
    rule.step([large], 33 * SECOND)
    assert rule.step([large], 34 * SECOND) == {"roof": 1}

    assert rule.step([small], 70 * SECOND) == {}
    assert rule.step([small], 94 * SECOND) == {"roof": 7}


def test_rays_are_fitted_to_the_machine_before_the_first_packet():
    fitted = fit_rays([load(name, 0.66) for name in "abcd"], cores=2)

    assert fits(fitted, 2)
    assert sorted(one.rays for one in fitted) == [1, 1, 7, 7]


def test_a_rig_that_fits_with_no_rays_at_all_is_left_with_one_ray_each():
    fitted = fit_rays([load(str(number), 0.66) for number in range(20)], cores=2)

    assert [one.rays for one in fitted] == [1] * 20
    assert total_share(fitted) > 2


def test_a_sensor_that_needs_more_than_a_core_gives_up_rays_on_any_machine():
    (fitted,) = fit_rays([load(share=1.2, rays=19, wanted=19)], cores=64)

    assert fitted.rays == 7
