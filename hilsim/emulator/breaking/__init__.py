"""What faults on command do to a lidar, and what they did."""
