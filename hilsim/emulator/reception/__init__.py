"""Steps of the receiver's stage: light on its way to the detector."""
