"""Rules for Ouster streams: lidar packets with the sensor's metadata, and IMU packets of both forms."""
