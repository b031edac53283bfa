"""The map step over many captures: in this process, over processes, or over machines; results come in the order of the captures, whoever is first.

Results are equal bit by bit whichever way they come about: captures, and the parts of one that threads read beside each other, are counted each by itself,
and merging knows no order.
"""

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hilsim.background.job import MapJob, MappedCapture, map_capture
from hilsim.errors import ConfigError, HilsimError

if TYPE_CHECKING:
    from distributed import Client

LOCAL_CLUSTER = "local"
_WAITING_PER_WORKER = 2


class Advance(Protocol):
    """Called with the number of further bytes processed."""

    def __call__(self, done_bytes: int, /) -> object:
        """Take note."""


class _Submit(Protocol):
    def __call__(self, job: MapJob, path: Path, /) -> Any:
        """A future of a mapped capture."""


def map_here(job: MapJob, paths: Sequence[Path], advance: Advance, threads: int = 1) -> Iterator[MappedCapture]:
    """Map captures one after the other in this process, parts of each in ``threads`` threads."""
    for path in paths:
        yield map_capture(job, path, advance, threads)


def map_in_processes(job: MapJob, paths: Sequence[Path], advance: Advance, workers: int) -> Iterator[MappedCapture]:
    """Map captures in ``workers`` processes, each a fresh one, so that threads of this one cannot do harm; with fewer captures each has threads."""
    threads = max(workers // len(paths), 1)
    with ProcessPoolExecutor(min(workers, len(paths)), mp_context=multiprocessing.get_context("spawn")) as pool:

        def submit(job: MapJob, path: Path) -> Future[MappedCapture | HilsimError]:
            return pool.submit(_mapped, job, path, threads)

        yield from _in_order(submit, job, paths, advance, workers)


def map_on_cluster(job: MapJob, paths: Sequence[Path], advance: Advance, address: str, workers: int) -> Iterator[MappedCapture]:
    """Map captures on the workers of a Dask scheduler.

    Args:
        job: What is to be done.
        paths: Captures, which every worker must find under these names.
        advance: Called for captures processed.
        address: Of the scheduler, like ``tcp://10.0.0.5:8786``; or ``local`` for worker processes of this machine.
        workers: How many, where they are local.

    Raises:
        ConfigError: Dask is not installed, or there is no scheduler at the address.
        CaptureError: as of ``map_capture``.
    """
    with _client(address, min(workers, len(paths))) as client:
        known = sum(client.nthreads().values()) or 1

        def submit(job: MapJob, path: Path) -> Any:
            return client.submit(_mapped, job, path.resolve(), pure=False)

        yield from _in_order(submit, job, paths, advance, known)


def _in_order(submit: _Submit, job: MapJob, paths: Sequence[Path], advance: Advance, workers: int) -> Iterator[MappedCapture]:
    """Results in the order of the captures; only so many wait that memory stays bounded."""
    waiting: deque[tuple[Path, Any]] = deque()
    rest = deque(paths)
    while waiting or rest:
        while rest and len(waiting) < _WAITING_PER_WORKER * workers:
            path = rest.popleft()
            waiting.append((path, submit(job, path)))
        path, future = waiting.popleft()
        found = future.result()
        if isinstance(found, HilsimError):
            for _, other in waiting:
                other.cancel()
            raise found
        advance(path.stat().st_size)
        yield found


def _mapped(job: MapJob, path: Path, threads: int = 1) -> MappedCapture | HilsimError:
    """As ``map_capture``, with a fault as a result: a cluster would try again what was raised, and wrap it."""
    try:
        return map_capture(job, path, threads=threads)
    except HilsimError as error:
        return error


@contextmanager
def _client(address: str, workers: int) -> "Iterator[Client]":
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f'--cluster needs Dask\'s distributed, got "{error}": pip install distributed (in a checkout: pip install -e ".[cluster]")'
        ) from error
    if address == LOCAL_CLUSTER:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1") as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ConfigError(f"--cluster must be the address of a Dask scheduler, got {address}: {error}") from error
    with client:
        yield client


Mapper = Callable[[MapJob, Sequence[Path], Advance], Iterator[MappedCapture]]


def mapper(workers: int, cluster: str) -> Mapper:
    """The way to map captures.

    Args:
        workers: Processes, or threads where there is one capture, that are this machine's.
        cluster: Address of a Dask scheduler, ``local``, or empty for none.
    """
    if cluster:
        return lambda job, paths, advance: map_on_cluster(job, paths, advance, cluster, workers)
    if workers > 1:
        return lambda job, paths, advance: (
            map_in_processes(job, paths, advance, workers) if len(paths) > 1 else map_here(job, paths, advance, workers)
        )
    return map_here
