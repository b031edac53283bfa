"""Message for an exhausted resource of this machine or shell, which an operator can raise; a traceback would not help."""

import errno

_MEMORY = "must have more memory: see `ulimit -v`, the service's MemoryMax= and `free -m`"
_FILES = "must be allowed more open files: see `ulimit -n`, or the service's LimitNOFILE="
_THREADS = "must be allowed more threads or more memory for them: see `ulimit -u`, `ulimit -v`, or the service's TasksMax="
_OF_THE_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
"""Messages of the dynamic loader, which libraries wrap into errors without an error number."""
_BY_ERRNO = {errno.ENOMEM: _MEMORY, errno.EMFILE: _FILES, errno.ENFILE: _FILES}


def scarcity(error: BaseException) -> str:
    """Name of the exhausted resource that an exception reports; empty for other exceptions.

    In a group the first such exception counts: when one task has no memory, other tasks fail with other errors.
    """
    for fault in _chain(error):
        sentence = ""
        if isinstance(fault, MemoryError):
            sentence = _MEMORY
        elif isinstance(fault, OSError | ImportError):
            number = fault.errno if isinstance(fault, OSError) else None
            sentence = _MEMORY if any(text in str(fault) for text in _OF_THE_LOADER) else _BY_ERRNO.get(number or 0, "")
        elif isinstance(fault, RuntimeError) and "can't start new thread" in str(fault):
            sentence = _THREADS
        if sentence:
            return f"hilsim {sentence} ({str(fault) or type(fault).__name__})"
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """List an exception, the members of a group, and the causes of each."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting and len(found) < 100:
        fault = waiting.pop(0)
        found.append(fault)
        waiting += fault.exceptions if isinstance(fault, BaseExceptionGroup) else ()
        waiting += [cause for cause in (fault.__cause__, fault.__context__) if cause is not None]
    return found
