"""Datagrams of several flows in one order."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.batch import DatagramBatch, Flow


class Merged(NamedTuple):
    """Datagrams of several flows in the order of their deadlines.

    Attributes:
        deadline_ns: ``int64[n]``, rig time.
        flow: ``int64[n]``, index of each datagram's flow in ``flows``.
        size: ``int32[n]``, bytes.
        payload: ``uint8[n, capacity]``.
        flows: Flows in the order of the batches.
    """

    deadline_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    payload: npt.NDArray[np.uint8]
    flows: tuple[Flow, ...]


def merged(batches: list[DatagramBatch]) -> Merged:
    """Merge the datagrams of several flows by deadline; equal deadlines are in the order of the flows."""
    if len(batches) == 1:
        (only,) = batches
        order = np.argsort(only.deadline_ns, kind="stable")
        return Merged(only.deadline_ns[order], np.zeros(order.size, np.int64), only.size[order], only.payload[order], (only.flow,))
    capacity = max(batch.payload.shape[1] for batch in batches)
    counts = [batch.size.size for batch in batches]
    payload = np.zeros((sum(counts), capacity), np.uint8)
    row = 0
    for batch in batches:
        payload[row : row + batch.size.size, : batch.payload.shape[1]] = batch.payload
        row += batch.size.size
    deadline = np.concatenate([batch.deadline_ns for batch in batches])
    order = np.argsort(deadline, kind="stable")
    return Merged(
        deadline[order],
        np.repeat(np.arange(len(batches)), counts)[order],
        np.concatenate([batch.size for batch in batches])[order],
        payload[order],
        tuple(batch.flow for batch in batches),
    )
