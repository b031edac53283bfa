"""What ``import hilsim.testing`` gives."""

import pytest

import hilsim.testing


@pytest.mark.parametrize("name", hilsim.testing.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(hilsim.testing, name) is not None
    assert name in dir(hilsim.testing)


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match=r"module 'hilsim\.testing' has no attribute 'Nothing'"):
        _ = hilsim.testing.Nothing
