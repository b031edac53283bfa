"""The shipped models that differ from the VLP-16 by their lasers pass every rule of their model."""

import pytest

from hilsim.read.analysis.conformance.checker import check

SPAN_NS = 2_000_000_000


@pytest.mark.parametrize(
    ("profile", "model", "setting"),
    [
        ("puck-hi-res", "Puck Hi-Res", {"gps": None}),
        pytest.param("puck-hi-res", "Puck Hi-Res", {"return_mode": "dual", "rotation_rate_rpm": 1200}, marks=pytest.mark.extended),
        ("vlp32c", "VLP-32C", {}),
        ("vlp32c", "VLP-32C", {"return_mode": "dual"}),
        pytest.param("vlp32c", "VLP-32C", {"return_mode": "last", "rotation_rate_rpm": 300, "gps": None}, marks=pytest.mark.extended),
        ("vls128", "VLS-128", {}),
        pytest.param("vls128", "VLS-128", {"return_mode": "last", "rotation_rate_rpm": 1200}, marks=pytest.mark.extended),
        pytest.param("vls128", "VLS-128", {"return_mode": "dual"}, marks=pytest.mark.extended),
        pytest.param("vls128", "VLS-128", {"unit": "drawn"}, marks=pytest.mark.extended),  # its stamps wander
        pytest.param(
            "vls128", "VLS-128", {"unit": "drawn", "return_mode": "dual", "rotation_rate_rpm": 300, "gps": None}, marks=pytest.mark.extended
        ),
    ],
    ids=str,
)
def test_a_shipped_model_draws_no_error_and_no_warning(own_stream, profile, model, setting):
    (sensor,) = check(own_stream.emulate(SPAN_NS, profile=profile, **setting)).sensors
    assert [finding.message for finding in sensor.findings] == []
    assert sensor.summary.model == model
    assert sensor.summary.lost_packets == 0
