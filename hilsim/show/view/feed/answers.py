"""Requests to a daemon by a view."""

import json
from pathlib import Path
from typing import Any

from hilsim.daemon.control_client import send_request
from hilsim.errors import ConfigError, TransmitError


def requested(address: str, token_file: str | Path | None, name: str) -> dict[str, Any]:
    """Send a request without keys; returns its answer.

    Raises:
        ConfigError: the daemon refuses, as one of another version does.
        TransmitError: no daemon listens there, or no answer arrives.
    """
    try:
        answer = json.loads(send_request(address, json.dumps({"do": name}), token_file=token_file))
    except ValueError as error:
        raise TransmitError(f"the daemon at {address} must answer with a JSON object, got {error}") from error
    if not isinstance(answer, dict):
        raise TransmitError(f"the daemon at {address} must answer with a JSON object, got {type(answer).__name__}")
    if not answer.pop("ok", False):
        raise ConfigError(str(answer.get("error", "the daemon refused the request without a reason")))
    return answer
