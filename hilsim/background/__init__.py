"""Captures of a sensor that stood still to a ``BackgroundMap``: datagrams are decoded straight into counts of distances by cell, which merge in any order."""
