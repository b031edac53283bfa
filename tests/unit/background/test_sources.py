"""Sources of maps that families give: found by the engine, told apart by their packets, the same in every process."""

import pickle

import numpy as np
import pytest

from hilsim.families.hesai.protocol.models import XT32
from hilsim.read.background.part import MapSource, map_sources, starts_with
from hilsim.read.background.survey import kinds_of
from tests.unit.background.recordings import batch, stdv_payload, vlp16_payloads

PAYLOADS = [vlp16_payloads(1)[0], stdv_payload([(0, 2000, 0, 40, 8, 0)]), b"STDT" + bytes(1042), XT32.header + bytes(1068)]


def test_each_source_is_what_the_engine_describes_and_has_a_kind_of_its_own():
    assert all(issubclass(source, MapSource) for source in map_sources())
    assert len({source.kind for source in map_sources()}) == len(map_sources()) == len(PAYLOADS)


def test_packets_are_told_apart_and_others_have_no_kind():
    others = [b"", b"\xff", vlp16_payloads(1)[0][:-1], b"STDV", bytes(1206), b"STDX" + bytes(40)]
    assert kinds_of(batch([*PAYLOADS, *others])).tolist() == [1, 2, 3, 4] + [0] * len(others)


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_a_source_in_another_process_equals_the_one_here(number):
    source = map_sources()[number].identify([PAYLOADS[number]] * 3)
    assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301 - our own bytes


def test_a_signature_is_sought_in_the_chosen_datagrams_only():
    some = batch([b"AB", b"AC", b"AB", b"A"])
    chosen = np.array([True, True, False, False])
    assert starts_with(some, chosen, b"AB").tolist() == [True, False, False, False]
