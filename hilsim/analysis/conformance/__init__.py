"""The bit-level checker: what a decoder does not notice, but a real Velodyne would never send."""
