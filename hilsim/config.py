"""TOML in, frozen specifications out."""
