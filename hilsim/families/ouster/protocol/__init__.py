"""Ouster's OS0, OS1 and OS2 (Rev 6 and Rev 7, firmware to 3.2): lidar packets, IMU packets, metadata and the place of each pixel."""
