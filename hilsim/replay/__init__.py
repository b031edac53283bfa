"""Recorded reality as a source: captures become datagrams with deadlines, re-timed and looped, on the clock that live sensors use."""
