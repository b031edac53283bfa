"""Verify a stream in continuous integration: exit code 1 where a packet is not what a real sensor sends.

    python verify_in_ci.py drive.pcap

Without a capture it checks two streams of its own: one of hilsim, and the same with a byte that was damaged.
"""

import dataclasses
import sys

import hilsim


def check(name: str, report: hilsim.VerifyReport) -> bool:
    """Print the verdict, and what is wrong."""
    print(f"{name}: {'passed' if report.passed else 'FAILED'}, {report.errors} errors, {report.warnings} warnings")
    for sensor in report.to_dict()["sensors"]:
        for finding in sensor["findings"]:
            if finding["severity"] == "error":
                print(f"  {sensor['source']} packet {finding['packet_index']}: {finding['message']}")
    return report.passed


def main() -> int:
    """Check the captures that are named."""
    if len(sys.argv) > 1:
        failed = [path for path in sys.argv[1:] if not check(path, hilsim.verify(path))]
        return 1 if failed else 0
    packets = list(hilsim.Emulator("demo").packets(0.0, 0.3))
    is_good = check("as it is", hilsim.verify(packets))
    payload = bytearray(packets[20].payload)
    payload[0] = 0x00  # of the flag of the first data block
    damaged = dataclasses.replace(packets[20], payload=bytes(payload))
    is_found = not check("damaged", hilsim.verify([*packets[:20], damaged, *packets[21:]]))
    return 0 if is_good and is_found else 1


if __name__ == "__main__":
    sys.exit(main())
