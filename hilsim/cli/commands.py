"""Names and one-sentence summaries of the commands, in a separate module so that ``hilsim --help`` imports none of them.

A test compares each sentence with the first one of the command's own help.
"""

SUMMARIES: dict[str, str] = {
    "run": "Emulate RIG (a .toml file or a shipped rig such as `demo`) until Ctrl-C or SIGTERM; SIGHUP reads it again.",
    "replay": "Send the packets of CAPTUREs (PCAP, PCAPNG; plain, gzip, zstd) as the sensors did, with new stamps; several captures use one clock.",
    "control": "Change what the daemon at ADDRESS emulates, control its replays, or show its state.",
    "view": "Show what SOURCE sends, live in a browser: points, sensors, objects and health.",
    "publish": "Publish the scans of SOURCE (a daemon or a capture) or of a UDP port, live, for Foxglove and as ROS 2 topics, until Ctrl-C.",
    "poses": "Send the poses of SOURCE (OSI, MAVLink, Gazebo, an FMU) to a rig that is driven from outside.",
    "check": "Validate RIG with everything it names, and print the effective configuration.",
    "record": "Write what RIG would send to a capture, as fast as the machine renders and always with the same bytes.",
    "verify": "Check a Velodyne, Cepton (STDV) or Ouster stream bit by bit, from CAPTURE (PCAP, PCAPNG) or live; real sensors and emulated ones alike.",
    "compare": "Compare the streams of Velodyne or Ouster sensors of captures A and B: each statistic of both, and how far they are apart.",
    "calibrate": "Learn a Velodyne unit from CAPTUREs of it, made while it stood still: its lasers, its encoder, its clock.",
    "inspect": "List what is in each CAPTURE (PCAP, PCAPNG, also gzip or zstd): sensors, modes, rates, gaps, lost packets, clocks; and how to replay it.",
    "picture": "Draw one scan of SOURCE (a rig or a capture) or of a live stream: images of range and reflectivity, and the view from above.",
    "map": "Aggregate the returns of SOURCE (a rig or a capture) to a map: the number of returns in each cell of a grid, and their mean position.",
    "export": "Write the scans, packets and poses of SOURCE (a rig or a capture) in a format of other tools: point clouds, MCAP, ROS 2 bags, labelled data sets.",
    "dataset": "Render the recordings of SPEC (a TOML file: rigs, seeds, variants) with their labels, each a file or folder of the data set.",
    "convert": "Copy the packets in SOURCE to TARGET, each byte as it is: captures, MCAP files of hilsim, ROS bags of drivers' packets.",
    "background": "Make a depth map of the place that the stationary sensor of each CAPTURE saw, without what came and went.",
    "doctor": "Report what this machine can do: how many sensors of RIG it carries, real-time scheduling, memory locking, CUDA, ports, cache; and what to change.",
    "bench": "Measure what this machine carries: rays a second by the size of the scene, and how many sensors like the first of RIG (by default the demo's).",
    "warm": "Compile the kernels that each RIG needs into the cache, so that its first start takes seconds: for images, services and tests.",
}
"""Summaries in the order in which a new user needs the commands; each command is a function in a module of the same name."""
