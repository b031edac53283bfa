"""OpenAPI description of the requests over HTTP, generated from the table of requests."""

from typing import Any

from hilsim.daemon.control.requests import PROTOCOL, REQUESTS, Request
from hilsim.version import __version__

_REFUSALS = {
    "400": "The body is not a JSON object.",
    "401": "The token is missing or wrong.",
    "403": "Host or Origin is another server.",
    "408": "The body did not arrive in time.",
    "413": "The body is too long.",
    "429": "There are too many requests a second.",
}


def _refusals(*statuses: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/refusal"}}}
    return {status: {"description": _REFUSALS[status], "content": content} for status in statuses}


_ID = {"type": ["integer", "string"], "description": "repeated in the answer"}
_REFUSAL = {
    "type": "object",
    "required": ["ok", "error"],
    "properties": {"ok": {"const": False}, "error": {"type": "string"}, "id": _ID},
}
_STREAM = "A WebSocket: each text message is a request, each answer and event a message."
_PACKETS = "A WebSocket: one text message with the answer to packets; then binary messages, which together are a capture (PCAP)."


def description() -> dict[str, Any]:
    """Make the OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "hilsim control", "version": str(PROTOCOL), "description": f"Requests to a running hilsim {__version__}."},
        "paths": {
            "/v1/request": {"post": _request_operation()},
            "/v1/help": {"get": _open_operation("help", "List the requests.")},
            "/v1/openapi.json": {"get": _open_operation("openapi", "This document.")},
            "/v1/stream": {"get": _stream_operation("stream", _STREAM)},
            "/v1/packets": {"get": _stream_operation("packets", _PACKETS)},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **{f"{name}_request": _schema(name, request) for name, request in REQUESTS.items()},
                **{f"{name}_answer": _answer_schema(request) for name, request in REQUESTS.items()},
                "refusal": _REFUSAL,
            },
        },
    }


def _request_operation() -> dict[str, Any]:
    asked = [{"$ref": f"#/components/schemas/{name}_request"} for name in REQUESTS]
    answers = [{"$ref": f"#/components/schemas/{name}_answer"} for name in REQUESTS]
    return {
        "operationId": "request",
        "summary": "Execute a request.",
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"oneOf": asked}}}},
        "responses": {
            "200": {
                "description": "The answer; ok is false where the request was refused.",
                "content": {"application/json": {"schema": {"anyOf": [*answers, {"$ref": "#/components/schemas/refusal"}]}}},
            },
            **_refusals(*_REFUSALS),
        },
    }


def _open_operation(name: str, text: str) -> dict[str, Any]:
    response = {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"operationId": name, "summary": text, "responses": {"200": response, **_refusals("403", "429")}}


def _stream_operation(name: str, text: str) -> dict[str, Any]:
    responses = {"101": {"description": "The connection is a WebSocket now."}, **_refusals("400", "401", "403", "429")}
    return {"operationId": name, "summary": text, "security": [{"token": []}, {}], "responses": responses}


def _schema(name: str, request: Request) -> dict[str, Any]:
    return {
        "type": "object",
        "description": request.text,
        "required": ["do", *(key for key, rule in request.keys.items() if rule.default is None)],
        "additionalProperties": False,
        "properties": {"do": {"const": name}, "id": _ID, **{key: rule.schema for key, rule in request.keys.items()}},
    }


def _answer_schema(request: Request) -> dict[str, Any]:
    keys: dict[str, Any] = {key: {"description": text} for key, text in request.answer.items()}
    return {"type": "object", "required": ["ok"], "properties": {"ok": {"const": True}, "id": _ID, **keys}}
