"""Diagnosis of problems of a bench, with advice."""
