"""Comparison of the statistics of two streams of Velodyne or Ouster sensors, such as an emulated and a real one."""
