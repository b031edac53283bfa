"""Rules by what they look at, and ``judge``, which has them all.

Each class takes what concerns it: ``frame``, ``sensor``, ``gps``, ``tick``; all limits are facts about PX4 1.12 unless marked otherwise.
"""
