"""Statistics of two Velodyne streams side by side: does an emulated sensor look like a real one?"""
