"""A finding of ``hilsim doctor``."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "fair", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing looked at.

    Attributes:
        subject: What.
        verdict: ``good``; ``fair`` works with limits; ``bad`` does not work.
        fact: What was found.
        advice: What to change, a line a step; empty when nothing need be.
    """

    subject: str
    verdict: Verdict
    fact: str
    advice: str = ""


def good(subject: str, fact: str) -> Finding:
    """Nothing need be changed."""
    return Finding(subject=subject, verdict="good", fact=fact)


def fair(subject: str, fact: str, advice: str = "") -> Finding:
    """It works with limits."""
    return Finding(subject=subject, verdict="fair", fact=fact, advice=advice)


def bad(subject: str, fact: str, advice: str = "") -> Finding:
    """It does not work."""
    return Finding(subject=subject, verdict="bad", fact=fact, advice=advice)
