"""Steps of the receiver's stage: what happens to light on its way, and which errors a return gets."""
