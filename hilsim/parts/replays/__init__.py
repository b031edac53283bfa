"""Replay of captures: turn them into datagrams with deadlines, re-timed and looped, on the clock that live sensors use."""
