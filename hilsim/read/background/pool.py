"""The map step over many captures: in this process, in other processes, or on other machines; results are in the order of the captures.

Results are bit-identical in all cases: captures, and the parts of one that threads read in parallel, are counted independently,
and merging does not depend on the order.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hilsim.errors import ConfigError, HilsimError
from hilsim.processes import process_pool
from hilsim.read.background.job import MapJob, MappedCapture, map_capture
from hilsim.read.background.part import Advance

if TYPE_CHECKING:
    from distributed import Client

LOCAL_CLUSTER = "local"
_WAITING_PER_WORKER = 2


class _Submit(Protocol):
    def __call__(self, job: MapJob, path: Path, /) -> Any:
        """Future of a mapped capture."""


def map_here(job: MapJob, paths: Sequence[Path], advance: Advance, threads: int = 1) -> Iterator[MappedCapture]:
    """Map captures one after the other in this process, with ``threads`` threads for parts of each."""
    for path in paths:
        yield map_capture(job, path, advance, threads)


def map_in_processes(job: MapJob, paths: Sequence[Path], advance: Advance, workers: int) -> Iterator[MappedCapture]:
    """Map captures in ``workers`` new processes, which are independent of this one's threads; with fewer captures each process has threads."""
    threads = max(workers // len(paths), 1)
    with process_pool(min(workers, len(paths))) as pool:

        def submit(job: MapJob, path: Path) -> Future[MappedCapture | HilsimError]:
            return pool.submit(_mapped, job, path, threads)

        yield from _in_order(submit, job, paths, advance, workers)


def map_on_cluster(job: MapJob, paths: Sequence[Path], advance: Advance, address: str, workers: int) -> Iterator[MappedCapture]:
    """Map captures on the workers of a Dask scheduler.

    Args:
        job: Parameters of the map step.
        paths: Captures, which must have the same paths on every worker.
        advance: Called with the number of further bytes processed.
        address: Address of the scheduler, such as ``tcp://10.0.0.5:8786``; or ``local`` for worker processes of this machine.
        workers: Number of local workers.

    Raises:
        ConfigError: Dask is not installed, or there is no scheduler at the address.
        CaptureError: as in ``map_capture``.
    """
    with dask_client(address, min(workers, len(paths))) as client:
        known = sum(client.nthreads().values()) or 1

        def submit(job: MapJob, path: Path) -> Any:
            return client.submit(_mapped, job, path.resolve(), pure=False)

        yield from _in_order(submit, job, paths, advance, known)


def _in_order(submit: _Submit, job: MapJob, paths: Sequence[Path], advance: Advance, workers: int) -> Iterator[MappedCapture]:
    """Results in the order of the captures; the number of waiting results is bounded, and so is memory."""
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
    """``map_capture`` with an error as a result: a cluster would retry and wrap an exception."""
    try:
        return map_capture(job, path, threads=threads)
    except HilsimError as error:
        return error


@contextmanager
def dask_client(address: str, workers: int) -> "Iterator[Client]":
    """Client of a Dask scheduler; ``local``: of worker processes of this machine.

    Raises:
        ConfigError: Dask is not installed, or there is no scheduler at the address.
    """
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
    """Mapper for captures.

    Args:
        workers: Number of processes of this machine, or of threads for a single capture.
        cluster: Address of a Dask scheduler, ``local``, or empty for none.
    """
    if cluster:
        return lambda job, paths, advance: map_on_cluster(job, paths, advance, cluster, workers)
    if workers > 1:
        return lambda job, paths, advance: (
            map_in_processes(job, paths, advance, workers) if len(paths) > 1 else map_here(job, paths, advance, workers)
        )
    return map_here
