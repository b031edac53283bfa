"""Parts of a rig that the core does not know: each folder has all that is of one kind, and ``registry.OWN_PARTS`` names its table."""
