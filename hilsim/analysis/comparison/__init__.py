"""Comparison of the statistics of two Velodyne streams, such as an emulated and a real one."""
