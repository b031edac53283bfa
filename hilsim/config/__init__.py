"""Configuration: TOML files parsed into frozen specifications; every fault is reported at once, with file and key."""
