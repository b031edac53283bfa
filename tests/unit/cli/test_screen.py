"""The live line on a terminal."""

import time

import click
import pytest

from hilsim.cli.terminal.live_line import LiveLine
from hilsim.cli.terminal.screen import Screen
from hilsim.parts.gazebo.reading import GazeboReading
from hilsim.telemetry.readings import Reading
from tests.unit.telemetry.conftest import make_flow, make_reading

LIMIT_S = 30.0


@pytest.fixture
def context():
    with click.Context(click.Command("run")) as made:
        yield made


@pytest.fixture
def written(capsys):
    """All that was written to standard error so far."""
    so_far = []

    def look():
        so_far.append(capsys.readouterr().err)
        return "".join(so_far)

    return look


def await_that(holds):
    until_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.01)


@pytest.mark.usefixtures("context")
def test_eighty_columns_show_all_of_a_healthy_sensor_but_for_the_end_of_the_count(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    reading = make_reading(flows=(make_flow("roof", sent_packets=9_999_999, send_errors={}, dropped_packets=0),), parts={})
    screen = Screen("demo", LiveLine(is_watched=True))
    screen.status(reading)
    screen.status(reading)  # the rate is known from the second one on
    line = click.unstyle(capsys.readouterr().err).rpartition("\x1b[K")[2].rpartition("\r")[2]
    assert "0/s" in line
    assert len(line) < 80
    assert line.index("fifo  9,") + len("fifo") + len("90") < 80


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize(
    ("scans", "skipped", "shown"),
    [(0, 0, "no subscriber yet"), (1200, 0, "2,400 scans to subscribers"), (5, 1, "10 scans to subscribers, 2 left out")],
)
def test_a_world_without_packets_shows_what_subscribers_had(capsys, scans, skipped, shown):
    lidars = tuple(GazeboReading(name=name, scans=scans, messages=scans, skipped_scans=skipped) for name in ("a::b::top", "a::b::low"))
    Screen("yard", LiveLine(is_watched=True)).status(Reading(parts={"gazebo": lidars}))
    assert click.unstyle(capsys.readouterr().err).rpartition("\x1b[K")[2].strip() == shown


@pytest.mark.usefixtures("context")
def test_a_step_without_news_shows_progress(written):
    line = LiveLine(is_watched=True)
    line.step("demo: starting")
    await_that(lambda: "demo: starting ....." in written())
    line.step("demo: reading the rig")
    await_that(lambda: "demo: reading the rig ...." in written())
    line.end_steps()


def test_a_line_is_taken_away_when_its_command_ends_and_not_written_again(context, written):
    line = LiveLine(is_watched=True)
    line.step("demo: starting")
    context.close()
    line._thread.join(LIMIT_S)
    assert not line._thread.is_alive()
    assert click.unstyle(written()).endswith("starting ...\r")


@pytest.mark.usefixtures("context")
def test_steps_are_not_printed_without_a_terminal(written):
    LiveLine(is_watched=False).step("demo: starting")
    assert written() == ""
