"""Program that judges emulated captures beside real ones: ``python -m tools.judge REAL... -- EMULATED...``.

Classifiers try to tell the emulated captures from the real ones, and the real ones from each other.
Its exit code is 1 if emulated captures are distinguished better than real units are, or if no group could be judged.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import HilsimError
from tools.judge.capture_sample import CaptureSample, sample_capture
from tools.judge.judge import judge
from tools.judge.judge_report import judgement_json, render_judgement

_SEPARATOR = "--"


def main(argv: Sequence[str]) -> int:
    """Judge, and print the report; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge", usage="%(prog)s [--json] REAL... -- EMULATED...")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print everything as JSON")
    parser.add_argument("real", type=Path, nargs="+", help="captures of real sensors, two or more")
    place = argv.index(_SEPARATOR) if _SEPARATOR in argv else len(argv)
    options = parser.parse_args(argv[:place])
    emulated = [Path(name) for name in argv[place + 1 :]]
    if not emulated:
        parser.error("real captures, -- and emulated captures are needed")
    try:
        judgement = judge(_sampled(options.real), _sampled(emulated))
    except HilsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    text = json.dumps(judgement_json(judgement)) if options.as_json else "\n".join(render_judgement(judgement))
    sys.stdout.write(f"{text}\n")
    return 0 if judgement.passed else 1


def _sampled(paths: Sequence[Path]) -> list[CaptureSample]:
    return [sample_capture(CaptureFile(path), name=str(path)) for path in paths]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
