"""Log levels, apart from the logs, so that a command's help need not import them."""

from typing import Literal, get_args

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)
