"""``hilsim verify CAPTURE``, but for when packets left: a busy machine sends in bursts, which is no fault of what is sent. ``bench/`` measures that."""

import json
import subprocess
import sys

done = subprocess.run([sys.executable, "-m", "hilsim", "verify", *sys.argv[1:], "--json"], capture_output=True, text=True, check=False)
sys.stderr.write(done.stderr)
verdict = json.loads(done.stdout)
findings = verdict["findings"] + [finding for sensor in verdict["sensors"] for finding in sensor["findings"]]
errors = [finding for finding in findings if finding["severity"] == "error" and not finding["rule"].startswith("spacing.")]
sys.stdout.write(json.dumps(findings, indent=2) + "\n")
sys.exit(1 if errors or not verdict["sensors"] else 0)
