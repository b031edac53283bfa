"""The live line on a terminal."""

import click

from hilsim.cli.screen import Screen
from tests.unit.telemetry.conftest import make_flow, make_reading


def test_eighty_columns_show_all_of_a_healthy_sensor_but_for_the_end_of_the_count(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    reading = make_reading(flows=(make_flow("roof", sent_packets=9_999_999, send_errors={}, dropped_packets=0),), vehicle=None)
    screen = Screen("demo")
    screen.status(reading)
    screen.status(reading)  # the rate is known from the second one on
    line = click.unstyle(capsys.readouterr().err).rpartition("\x1b[K")[2].rpartition("\r")[2]
    assert "0/s" in line
    assert len(line) < 80
    assert line.index("fifo  9,") + len("fifo") + len("90") < 80
