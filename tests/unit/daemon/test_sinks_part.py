"""Sinks as a part of a running rig: which changes of a rig they refuse."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon.parts import RigContext
from hilsim.daemon.sinks import part
from hilsim.errors import ConfigError
from tests.plugins import install_example
from tests.support import ROOM, write_rig


@pytest.fixture
def change_to(tmp_path):
    """Makes the sinks of a room ready for the same room with more in its rig file."""
    rig = load_rig(write_rig(tmp_path))
    return lambda text: part.Sinks(RigContext(rig=rig)).change(load_rig(write_rig(tmp_path, ROOM + text)))


def test_another_recording_is_refused_while_packets_flow(change_to):
    with pytest.raises(ConfigError, match=r"\[record\] cannot change while packets flow"):
        change_to('[record]\nfile = "other.pcap"')


@pytest.mark.parametrize(
    ("text", "subject"),
    [('[record]\nfile = "drive.pcap"\n', ""), ('[[sink]]\nkind = "departures"\nname = "log"\nfile = "sent.csv"\n', "log")],
    ids=["recording alone", "sink alone"],
)
def test_the_fault_of_a_sink_names_it_unless_it_is_the_only_recording(tmp_path, plugin_site, text, subject):
    install_example(plugin_site)
    sinks = part.Sinks(RigContext(rig=load_rig(write_rig(tmp_path, ROOM + text))))
    sinks.prepare()
    sinks.followers[0].fault = "the disk is full"
    (fault,) = sinks.faults(0)
    assert (fault.key, fault.subject, fault.text) == ("recording_ended", subject, "the recording has ended: the disk is full")


def test_another_sink_of_a_plugin_is_refused_while_packets_flow(change_to, plugin_site):
    install_example(plugin_site)
    with pytest.raises(ConfigError, match=r"\[\[sink\]\] cannot change while packets flow"):
        change_to('[[sink]]\nkind = "departures"\nfile = "sent.csv"')


def test_the_table_of_every_kind_of_sink_is_refused_by_its_name(change_to, monkeypatch):
    change_to("[weather]\nrain_mm_per_h = 1.0")
    monkeypatch.setattr(part, "KINDS", (*part.KINDS, part.SinkKind("weather", lambda _rig: iter([]))))
    with pytest.raises(ConfigError, match=r"\[weather\] cannot change while packets flow"):
        change_to("[weather]\nrain_mm_per_h = 1.0")
