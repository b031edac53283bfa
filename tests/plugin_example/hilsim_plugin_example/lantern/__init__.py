"""A family of its own: eight beams that all fire at once, in packets of a made-up form, with all that hilsim's own families have."""
