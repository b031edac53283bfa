"""Faults on command: what each is called, its keys, and when it acts; what it does is a function at its place in the pipeline."""
