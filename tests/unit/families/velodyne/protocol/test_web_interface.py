"""Documents and forms of a Velodyne's web interface, as clients of real units read and send them."""

from dataclasses import replace

import pytest

from hilsim.families.velodyne.protocol.web_interface import (
    FORM_PATHS,
    GpsConditions,
    HostSetting,
    NetSetting,
    WebSettings,
    WebStatus,
    changed_by_form,
    diagnostics_document,
    info_document,
    position_text,
    settings_document,
    status_document,
)

RATES = range(300, 1201, 60)
SETTINGS = WebSettings(
    returns="strongest",
    rpm=600,
    fov_deg=(0, 359),
    host=HostSetting(address="192.168.1.77", data_port=2368, position_port=8308),
    net=NetSetting(address="192.168.1.201"),
)


def formed(path, *pairs, settings=SETTINGS):
    return changed_by_form(path, pairs, settings, rates_rpm=RATES)


def test_settings_have_the_types_that_clients_rely_on():
    assert settings_document(replace(SETTINGS, laser=False)) == {
        "laser": "Off",
        "returns": "Strongest",
        "rpm": 600,
        "fov": {"start": 0, "end": 359},
        "phaselock": {"enabled": "Off", "offset": "0"},
        "ppsctl": {"gpsrxv": "Off", "ppslck": "Off", "delay": "5"},
        "gpsctl": {"gpsrxv": "Off"},
        "host": {"addr": "192.168.1.77", "dport": "2368", "tport": "8308"},
        "net": {"addr": "192.168.1.201", "mask": "255.255.255.0", "gateway": "192.168.1.1", "dhcp": "Off"},
    }


def test_a_status_names_motor_laser_and_receiver():
    status = WebStatus(phase_cdeg=30_755, pps="Locked", position=position_text(49.0, -2.25))
    assert status_document(SETTINGS, status) == {
        "gps": {"pps_state": "Locked", "position": "49 00.00N 02 15.00W"},
        "motor": {"state": "On", "rpm": 600, "lock": "Off", "phase": 30_755},
        "laser": {"state": "On"},
    }
    stands = status_document(replace(SETTINGS, rpm=0), status)
    assert (stands["motor"]["state"], stands["motor"]["rpm"], stands["laser"]["state"]) == ("On", 0, "Disabled")


def volts(count):
    return count * 5.0 / 4096.0


def lm20_c(count):
    """As Autoware's monitor computes it."""
    return (2.1962e6 + (1.8639 - volts(count)) / 3.88e-6) ** 0.5 - 1481.96


def test_diagnostics_are_plausible_counts_that_follow_the_state_and_are_never_constants():
    cold, warm = (diagnostics_document(SETTINGS, WebStatus(phase_cdeg=0, uptime_s=seconds), 3) for seconds in (1.0, 3600.0))
    for part in ("top", "bot"):
        assert lm20_c(cold["volt_temp"][part]["lm20_temp"]) == pytest.approx(24.0, abs=1.5)
        assert 30.0 < lm20_c(warm["volt_temp"][part]["lm20_temp"]) < 60.0
    board = warm["volt_temp"]["bot"]
    assert 2 * volts(board["pwr_5v"]) == pytest.approx(5.0, abs=0.1)
    assert 11 * volts(board["pwr_v_in"]) == pytest.approx(12.0, abs=0.3)
    assert 0.3 < 10 * (volts(board["i_out"]) - 2.5) < 1.0
    assert -190.0 < 101 * (volts(warm["volt_temp"]["top"]["hv"]) - 5.0) < -130.0
    dark = diagnostics_document(replace(SETTINGS, laser=False), WebStatus(phase_cdeg=0, uptime_s=3600.0), 3)
    assert abs(101 * (volts(dark["volt_temp"]["top"]["hv"]) - 5.0)) < 2.0
    later = diagnostics_document(SETTINGS, WebStatus(phase_cdeg=0, uptime_s=3601.0), 3)
    assert later != warm
    assert diagnostics_document(SETTINGS, WebStatus(phase_cdeg=0, uptime_s=3600.0), 3) == warm


def test_info_has_the_address_with_dashes():
    assert info_document("VLP-16", "11001", "60:76:88:10:00:01")["mac_addr"] == "60-76-88-10-00-01"


def test_a_form_changes_several_settings_at_once():
    assert formed("", ("laser", "Off"), ("rpm", "0"), ("returns", "Last")) == replace(SETTINGS, laser=False, rpm=0, returns="last")
    assert formed("", ("returns", "dual"), ("rpm", " 1200 ")) == replace(SETTINGS, returns="dual", rpm=1200)
    assert formed("/fov", ("start", "270"), ("end", "90")).fov_deg == (270, 90)
    assert formed("/fov", ("end", "90")).fov_deg == (0, 90)
    assert formed("/host", ("dport", "3000")).host == replace(SETTINGS.host, data_port=3000)
    assert formed("/net", ("addr", "10.0.0.2"), ("dhcp", "on")).net == replace(SETTINGS.net, address="10.0.0.2", dhcp=True)
    locked = formed("/phaselock", ("enabled", "on"), ("offset", "18000"), ("offsetInput", "180"))
    assert locked == replace(SETTINGS, phase_lock=True, phase_cdeg=18_000)
    assert formed("/ppsctl", ("ppslck", "on"), ("delay", "9")).gps == GpsConditions(pps_needs_lock=True, delay_s=9)
    assert formed("/gpsctl", ("gpsrxv", "on")).gps == GpsConditions(nmea_needs_valid=True)


@pytest.mark.parametrize(
    ("path", "pair", "fault"),
    [
        ("", ("rpm", "610"), "rpm must be 0, or 300 to 1200 in steps of 60, got 610"),
        ("", ("rpm", "-300"), 'rpm must be 0 to 99999, got "-300"'),
        ("", ("rpm", "٦٠٠"), "rpm must be 0 to 99999"),
        ("", ("returns", "First"), 'returns must be Strongest, Last, Dual, got "First"'),
        ("", ("laser", "1"), 'laser must be on or off, got "1"'),
        ("", ("fov", "1"), r"fov is no key here \(rpm, returns, laser\)"),
        ("/fov", ("end", "360"), 'end must be 0 to 359, got "360"'),
        ("/host", ("addr", "256.1.1.1"), 'addr must be an IPv4 address, got "256.1.1.1"'),
        ("/host", ("addr", "bench"), "addr must be an IPv4 address"),
        ("/host", ("tport", "0"), 'tport must be 1 to 65535, got "0"'),
        ("/phaselock", ("enabled", "yes"), 'enabled must be on or off, got "yes"'),
        ("/phaselock", ("offset", "36001"), 'offset must be 0 to 36000, got "36001"'),
        ("/ppsctl", ("delay", "65536"), 'delay must be 0 to 65535, got "65536"'),
    ],
)
def test_a_wrong_value_is_refused(path, pair, fault):
    with pytest.raises(ValueError, match=fault):
        formed(path, pair)


@pytest.mark.parametrize("path", FORM_PATHS)
def test_an_empty_form_is_refused_with_the_keys(path):
    with pytest.raises(ValueError, match="keys must be given: "):
        formed(path)


def test_all_faults_of_a_form_are_reported_together():
    with pytest.raises(ValueError, match=r"rpm must be .*; laser must be "):
        formed("", ("rpm", "1"), ("laser", "maybe"))
