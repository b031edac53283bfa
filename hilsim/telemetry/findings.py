"""A finding of ``hilsim doctor``."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "fair", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding.

    Attributes:
        subject: Examined subject.
        verdict: ``good``; ``fair`` works with limits; ``bad`` does not work.
        fact: Observed fact.
        advice: Advice, one step per line; empty if no change is needed.
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
