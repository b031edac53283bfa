"""Rules by subject, and ``judge``, which combines them.

Each class has the methods that it needs: ``frame``, ``sensor``, ``gps``, ``tick``; all limits are facts about PX4 1.12 unless marked otherwise.
"""
