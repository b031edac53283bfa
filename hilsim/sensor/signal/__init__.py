"""Errors of a real receiver in ranges and reflectivity bytes: noise of bytes, grid and correction of ranges, lost firings, bytes of empty firings."""
