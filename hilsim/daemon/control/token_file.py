"""File with the token that requests over HTTP must contain."""

import hmac
import os
import secrets
import stat
from functools import partial
from pathlib import Path

from hilsim.errors import ConfigError

_SHORTEST, _LONGEST = 16, 512
_RANDOM_BYTES = 32


class Token:
    """A token that is compared in constant time and never logged."""

    def __init__(self, text: str) -> None:
        """Create a token from a text."""
        self._is_equal = partial(hmac.compare_digest, text.encode())

    def is_equal(self, text: object) -> bool:
        """Whether a text is the token."""
        return isinstance(text, str) and self._is_equal(text.encode(errors="replace"))

    def __repr__(self) -> str:
        """Text that does not contain the token."""
        return "Token()"


def read_or_make_token(path: Path) -> str:
    """Read the token from a file; a missing file is created with a new token, for this user only.

    Raises:
        ConfigError: the file cannot be created or read, other users can read it, or it contains no token.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_token(path)
    except OSError as error:
        raise ConfigError(f"token_file must be a file that can be created, got {path}: {error.strerror}") from error
    token = secrets.token_urlsafe(_RANDOM_BYTES)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, 0o600)  # whatever the umask is
        file.write(f"{token}\n")
    return token


def read_token(path: Path) -> str:
    """Read the token from a file.

    Raises:
        ConfigError: the file cannot be read, other users can read it, or it contains no token.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            _enforce_private(os.fstat(descriptor), path)
            content = file.read(_LONGEST + 2)
    except OSError as error:
        raise ConfigError(f"token_file must be a readable file, got {path}: {error.strerror}") from error
    return checked_token(content.decode("ascii", errors="replace").strip(), f"token_file {path}")


def checked_token(token: str, subject: str) -> str:
    """Return the token if it is valid.

    Args:
        token: Text of the token.
        subject: Beginning of the error message, which does not contain the token.

    Raises:
        ConfigError: the text is not a valid token.
    """
    is_sound = token.isascii() and token.isprintable() and " " not in token
    if not is_sound or not _SHORTEST <= len(token) <= _LONGEST:
        raise ConfigError(
            f"{subject} must hold {_SHORTEST} to {_LONGEST} characters of printable ASCII without blanks, got {len(token)} {'' if is_sound else 'other '}characters"
        )
    return token


def _enforce_private(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"token_file must be a regular file, got {path}")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise ConfigError(f"token_file must be readable by its owner only (mode 0600), got mode {mode:04o} at {path}")
    if status.st_uid not in {os.geteuid(), 0}:
        raise ConfigError(f"token_file must be owned by the user of the process, got user number {status.st_uid} at {path}")
