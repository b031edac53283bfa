"""Events as they are written: JSON without a terminal, colours on a terminal."""

import io
import json
import logging
import warnings

import numpy as np
import pytest
import structlog

from hilsim.telemetry.logs import configure_logging


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def configured():
    """``configure_logging`` whose traces are gone afterwards."""
    root = logging.getLogger()
    level = root.level
    yield configure_logging
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    root.setLevel(level)
    for handler in [handler for handler in root.handlers if handler.get_name() == "hilsim"]:
        root.removeHandler(handler)


def test_an_event_is_one_json_line_with_time_level_and_name_first(configured):
    stream = io.StringIO()
    configured("info", stream=stream)
    structlog.get_logger().warning("schedule.deadline_missed", lateness_s=0.0042, packet_index=np.int64(751))
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert list(event) == ["timestamp", "level", "event", "lateness_s", "packet_index"]
    assert (event["level"], event["event"], event["lateness_s"], event["packet_index"]) == ("warning", "schedule.deadline_missed", 0.0042, 751)


def test_stamps_are_utc(configured):
    stream = io.StringIO()
    configured(stream=stream)
    structlog.get_logger().info("daemon.started")
    assert json.loads(stream.getvalue())["timestamp"].endswith("Z")


def test_a_terminal_gets_keys_and_values_in_colour(configured, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    configured(stream=stream)
    structlog.get_logger().info("ring.drained", depth=np.int64(7))
    assert "ring.drained" in stream.getvalue()
    assert "\x1b[36mdepth\x1b[0m=\x1b[35m7\x1b[0m" in stream.getvalue()


def test_no_color_is_obeyed_on_a_terminal(configured, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    configured(stream=stream)
    structlog.get_logger().info("ring.drained", depth=7)
    assert "\x1b" not in stream.getvalue()
    assert "depth=7" in stream.getvalue()


@pytest.mark.parametrize(("level", "heard"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_events_below_the_level_are_not_written(configured, level, heard):
    stream = io.StringIO()
    configured(level, stream=stream)
    log = structlog.get_logger()
    log.debug("packet.sent")
    log.info("daemon.started")
    log.warning("ring.drained")
    assert len(stream.getvalue().splitlines()) == heard


def test_an_unknown_level_is_refused(configured):
    with pytest.raises(ValueError, match="level must be one of debug, info, warning, error, got 'loud'"):
        configured("loud")


def test_the_standard_library_speaks_through_the_same_handler(configured):
    stream = io.StringIO()
    configured(stream=stream)
    logging.getLogger("aiohttp.server").error("lost %d clients", 3)
    event = json.loads(stream.getvalue())
    assert (event["event"], event["message"], event["level"]) == ("aiohttp.server.logged", "lost 3 clients", "error")


def test_a_warning_of_a_library_becomes_an_event(configured):
    stream = io.StringIO()
    configured(stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("clock went back", stacklevel=1)
    assert json.loads(stream.getvalue())["event"] == "py.warnings.logged"


def test_a_traceback_is_text_without_local_values(configured):
    stream = io.StringIO()
    configured(stream=stream)
    password = "hunter2"  # noqa: F841, S105 - a local whose value must not reach the log
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        structlog.get_logger().exception("daemon.failed")
    event = json.loads(stream.getvalue())
    assert "ZeroDivisionError" in event["exception"]
    assert "hunter2" not in stream.getvalue()


def test_configuring_twice_does_not_write_twice(configured):
    first, second = io.StringIO(), io.StringIO()
    configured(stream=first)
    configured(stream=second)
    structlog.get_logger().info("daemon.started")
    assert (len(first.getvalue().splitlines()), len(second.getvalue().splitlines())) == (0, 1)
