"""The commands' names and what each does in one sentence, apart from the commands: ``hilsim --help`` imports none of them.

A test holds each sentence equal to the first one of its command's own help.
"""

SUMMARIES: dict[str, str] = {
    "run": "Emulate RIG (a .toml file or a shipped rig such as `demo`) until Ctrl-C or SIGTERM; SIGHUP reads it again.",
    "replay": "Send what CAPTUREs hold (PCAP, PCAPNG; plain, gzip, zstd) as the sensors did, with stamps that are now; several play on one clock.",
    "control": "Change what the daemon at ADDRESS emulates, control its replays, or show its state.",
    "check": "Validate RIG with everything it names, and print the effective configuration.",
    "record": "Write what RIG would send to a capture, as fast as the machine goes and always the same bytes.",
    "verify": "Check a Velodyne or Cepton (STDV) stream bit by bit, from CAPTURE (PCAP, PCAPNG) or live; real sensors and emulated ones alike.",
    "compare": "Compare the Velodyne streams of captures A and B: each statistic of both, and how far they are apart.",
    "inspect": "List what is in each CAPTURE (PCAP, PCAPNG, also gzip or zstd): sensors, modes, rates, gaps, lost packets, clocks; and how to replay it.",
    "picture": "Draw one scan of SOURCE (a rig or a capture) or of a live stream: what it sees by range and by reflectivity, and the view from above.",
    "background": "Make a depth map of the place that the sensor of each CAPTURE saw, standing still; what came and went is left out.",
    "doctor": "Report what this machine can do: how many sensors of RIG it carries, real-time scheduling, memory locking, CUDA, ports, cache; and what to change.",
    "bench": "Measure what this machine carries: rays a second by the size of the scene, and how many sensors like the first of RIG (by default the demo's).",
    "warm": "Compile the kernels that each RIG needs into the cache, so that its first start takes seconds: for images, services and tests.",
}
"""In the order a newcomer needs them; each is a function of this name in a module of this name."""
