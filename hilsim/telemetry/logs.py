"""Configuration of logging, for structlog and the standard library alike.

One event per line on standard error. On a terminal: time, level, event, ``key=value`` in colour. Otherwise (journal, file, pipe): one JSON object per line.
Event names are constant and dotted, subject first, past tense (``schedule.deadline_missed``); variable data are keys with their unit.
aiohttp and asyncio log through the standard library: their text is the ``message`` of an event named ``<logger>.logged``.
"""

import logging
import os
import sys
from typing import TextIO

import numpy as np
import structlog

from hilsim.telemetry.levels import LEVELS, Level

_HANDLER_NAME = "hilsim"


def configure_logging(level: Level = "info", *, stream: TextIO | None = None) -> None:
    """Write every event at ``level`` or above to ``stream`` (standard error); another call replaces the configuration.

    Colours and ``key=value`` when the stream is a terminal, else JSON. Stamps are UTC, RFC 3339 with microseconds.

    Raises:
        ValueError: the level is none of ``LEVELS``.
    """
    if level not in LEVELS:
        message = f"level must be one of {', '.join(LEVELS)}, got {level!r}"
        raise ValueError(message)
    target = sys.stderr if stream is None else stream
    stamped: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *stamped, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # a test or a reload may configure again
    )
    handler = logging.StreamHandler(target)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*stamped, _name_foreign_event],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(is_terminal=target.isatty())],
        )
    )
    root = logging.getLogger()
    for former in [handler for handler in root.handlers if handler.get_name() == _HANDLER_NAME]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, root.level))  # its INFO and DEBUG events concern selectors only
    logging.captureWarnings(capture=True)


def _renderers(*, is_terminal: bool) -> list[structlog.typing.Processor]:
    if is_terminal:
        return [_order_keys, structlog.dev.ConsoleRenderer(colors="NO_COLOR" not in os.environ, sort_keys=False)]
    return [structlog.processors.format_exc_info, _order_keys, structlog.processors.JSONRenderer(default=str)]


def _order_keys(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Order the keys: time, level, event, then the others as given; NumPy scalars become plain numbers."""
    first = {key: event[key] for key in ("timestamp", "level", "event") if key in event}
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in (first | dict(event)).items()}


def _name_foreign_event(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    record: logging.LogRecord = event["_record"]
    event["message"] = event["event"]
    event["event"] = f"{record.name}.logged"
    return event
