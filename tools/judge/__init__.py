"""Judgement of emulated captures beside real ones: how well a classifier distinguishes them, and how well it distinguishes two real units."""
