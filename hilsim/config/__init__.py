"""TOML in, frozen specifications out: every fault at once, with file and key."""
