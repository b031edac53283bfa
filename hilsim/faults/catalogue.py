"""All faults: a row each. A row has the keys of a fault, and says which function of its place makes it, with which values.

Ranges are of ``docs/reference/faults.md``, whose sources are named there; where no source gives a figure, the range is chosen.
"""

from enum import IntEnum
from typing import Any, NamedTuple

BROWN_OUT = "brown_out"
"""Kind of the fault that a sensor's own interface takes part in."""
REQUIRED: Any = object()
"""Default of a key that must be given."""


class Place(IntEnum):
    """Place of the pipeline at which a fault acts."""

    SENSOR = 0
    """Within a sensor: its optics, its head, its clock and what is at its GPS input."""
    NETWORK = 1
    """Between the sensor's socket and the receiver: a datagram at a time."""
    VEHICLE = 2
    """Readings of a vehicle's sensors, before its controller gets them."""
    MOTOR = 3
    """Motors of a vehicle."""
    LINE = 4
    """A serial line."""
    RANGE = 5
    """Ranges of a range sensor on a serial port, before it makes frames of them."""


class Effect(IntEnum):
    """Function that makes a fault; its values are ``FaultTable.value``."""

    DIM = 0
    """Lets light through: the share of one way."""
    DROPS = 1
    """Drops that run down the window: how many, their width (deg), the share of one way, degrees a second."""
    ECHO = 2
    """Adds an echo: range from, to (m), reflectivity from, to, whether it hides all others."""
    ERROR = 3
    """Falsifies a range: constant (m), standard deviation (m), the same for a laser (m)."""
    BYTE = 4
    """Falsifies reflectivity: standard deviation over the lasers as a share, factor."""
    ORDER = 5
    """Exchanges records: by so many channels."""
    READING = 6
    """Falsifies the encoder's reading: whether it is stuck, hundredths of a degree added, whether the turn is counted on."""
    TURN = 7
    """Moves the head: share by which it turns too fast, degrees ahead, degrees a second ahead."""
    STAMP = 8
    """Falsifies the clock: seconds ahead, ppm too fast, jitter at each second (s), share of seconds with a second edge, whether hours are counted,
    ms without power, after which it counts from 0 (0: it has power)."""
    PULSE = 9
    """Changes the pulse's state in position packets, which is its number: the state, ppm too fast without the pulse."""
    SENTENCE = 10
    """Falsifies the receiver's sentence: whether there is none, whether it is invalid, delay (s), seconds ahead, share of garbled characters."""
    THERMAL = 11
    """Changes the thermal status in position packets: the status, the temperature at shutdown (degrees Celsius)."""
    MASTER = 12
    """Takes the clock's master away: nothing, ppm too fast without it."""
    FLAP = 100
    """Lets nothing pass for a time, then everything: ms, ms."""
    LOSE = 101
    """Loses datagrams, by a state that changes at random times: mean ms in the good and the bad state, share lost in each."""
    CORRUPT = 102
    """Changes bits: share of all bits, share of the datagrams of which one bit is changed."""
    CUT = 103
    """Cuts payloads: share, bytes that are left."""
    CHECKSUM = 104
    """Writes wrong checksums: share of UDP's, of IP's."""
    TAG = 105
    """Adds a tag of IEEE 802.1Q: VLAN, priority."""
    QUEUE = 106
    """A queue: ms that it is shut, every so many ms, bit/s, bytes that it holds."""
    DELAY = 107
    """Delays: ms, ms of jitter, mean ms between changes of the jitter, its ``Jitter``."""
    REORDER = 108
    """Delays some: share, most ms."""
    REPEAT = 109
    """Repeats: share, ms from a datagram to its copy."""
    FRAGMENT = 110
    """Cuts frames into fragments: share, bytes of the largest IP packet, share of those whose last fragment leaves first."""
    BIAS = 200
    """Adds to a reading: its ``Unit``, what is added to each axis."""
    NOISE = 201
    """Adds noise to a reading: its ``Unit``, standard deviation."""
    CLIP = 202
    """Limits a reading: its ``Unit``, largest value of an axis."""
    FREEZE = 203
    """Repeats the last reading: its ``Unit``."""
    SILENCE = 204
    """Withholds readings: their ``Unit``."""
    SHIFT = 205
    """Shifts a position: metres, bearing (deg), metres up."""
    DRIFT = 206
    """Lets a position drift, and the velocity with it: m/s, bearing (deg), m/s up, time constant of the speed (s)."""
    JAM = 207
    """Loses a position, then scatters it: m and m/s at most, least and greatest reported error (m), most satellites."""
    THRUST = 208
    """Weakens motors: share of their thrust."""
    DROP_BYTES = 300
    """Loses bytes: share."""
    FLIP_BITS = 301
    """Changes bits: share."""
    HALVE = 302
    """Loses the ends of what is written at once: share."""
    LATENCY = 303
    """Holds bytes: ms of the timer, bytes of a transfer."""
    UNPLUG = 304
    """Takes the cable out."""
    MISREAD = 310
    """Falsifies a range: constant (m), standard deviation (m)."""
    KEEP = 311
    """Repeats the last range."""
    MUTE = 312
    """Sends nothing."""


class Jitter(IntEnum):
    """Distribution of what is added to a delay."""

    UNIFORM = 0
    NORMAL = 1
    PARETO = 2


RAW_EFFECTS = frozenset({Effect.CHECKSUM, Effect.TAG, Effect.FRAGMENT})
"""Effects upon headers, which only frames that hilsim makes itself have: ``mode = "ethernet"``."""


class Unit(IntEnum):
    """Sensor of a vehicle."""

    ACCELEROMETER = 0
    GYROSCOPE = 1
    COMPASS = 2
    BAROMETER = 3
    GPS = 4


class Key(NamedTuple):
    """A key of a fault.

    Attributes:
        name: Name in a table, with its unit.
        meaning: What it sets.
        default: Value where it is not given, ``REQUIRED`` for none. It decides the type.
        least: Smallest value.
        most: Largest value.
        type: Type; None: that of the default.
    """

    name: str
    meaning: str
    default: Any
    least: float
    most: float
    type: Any = None


class NetworkAct(NamedTuple):
    """What a fault does to datagrams.

    Attributes:
        effect: Function that does it.
        values: Values of the function: numbers, or names of keys.
        flows: Flows of a sensor that it befalls (``data``), or a pattern.
    """

    effect: Effect
    values: tuple[float | str, ...]
    flows: str = "*"


class FaultRow(NamedTuple):
    """A fault.

    Attributes:
        kind: Its word in a table.
        place: Place at which it acts.
        meaning: What is broken, and what shows it.
        effect: Function that makes it.
        values: Values of the function: numbers, or names of keys.
        keys: Its keys beside those of every fault.
        also: What it does to datagrams, if it is no fault of the network.
    """

    kind: str
    place: Place
    meaning: str
    effect: Effect
    values: tuple[float | str, ...]
    keys: tuple[Key, ...] = ()
    also: NetworkAct | None = None


_CHANNELS = Key("channels", "Numbers of the lasers, from 0, by their place in a packet; empty: all", (), 0, 127, tuple[int, ...])
_AZIMUTH = Key("azimuth_deg", "Sector, clockwise from the first angle to the second; below the first for one across 0", (0.0, 360.0), 0, 360)
_ELEVATION = Key("elevation_deg", "Lowest and highest elevation of the beams", (-90.0, 90.0), -90, 90)
_SHARE = Key("share", "Share of the firings that it befalls, each by itself", 1.0, 0, 1)
SECTOR = (_AZIMUTH, _ELEVATION, _CHANNELS, _SHARE)
"""Keys that choose firings."""
_RUN_DOWN = Key("ramp_s", "Time in which it runs down", 2.0, 0, 1e8)
_LASERS = (_CHANNELS._replace(default=REQUIRED), _AZIMUTH, _SHARE)


def _transmission(default: float) -> Key:
    return Key("transmission", "Share of the light that passes one way; the echo has its square", default, 0, 1)


_LOST = Key("share", "Share of the datagrams that it befalls, each by itself", 0.01, 0, 1)
_GOOD_MS = Key("good_ms", "Mean time in the good state", 1000.0, 0.01, 1e7)
_BAD_MS = Key("bad_ms", "Mean time in the bad state", 10.0, 0.01, 1e7)
_GOOD_LOSS = Key("good_loss", "Share lost in the good state", 0.0, 0, 1)
_BAD_LOSS = Key("bad_loss", "Share lost in the bad state", 1.0, 0, 1)
_DELAY_MS = Key("delay_ms", "Delay of every datagram", 10.0, 0, 10_000)
_CORRELATION_MS = Key(
    "correlation_ms", "Mean time after which the jitter is drawn anew, for all flows; 0: for each datagram by itself", 0.0, 0, 10_000
)
_QUEUE_BYTES = Key("queue_bytes", "Bytes that the queue holds; what has no room is lost", 1_000_000, 0, 1_000_000_000)


def _burst_loss(kind: str, meaning: str, good_ms: float, bad_ms: float) -> FaultRow:
    keys = (_GOOD_MS._replace(default=good_ms), _BAD_MS._replace(default=bad_ms), _GOOD_LOSS, _BAD_LOSS)
    return FaultRow(kind, Place.NETWORK, meaning, Effect.LOSE, ("good_ms", "bad_ms", "good_loss", "bad_loss"), keys)


def _delay(kind: str, meaning: str, jitter: Jitter, jitter_key: str) -> FaultRow:
    keys = (_DELAY_MS, Key("jitter_ms", jitter_key, 1.0, 0, 1000), _CORRELATION_MS)
    return FaultRow(kind, Place.NETWORK, meaning, Effect.DELAY, ("delay_ms", "jitter_ms", "correlation_ms", float(jitter)), keys)


def _silent(unit: Unit, word: str, frozen: str, off: str) -> tuple[FaultRow, ...]:
    """Faults of a vehicle's sensor that gives nothing new."""
    return (
        FaultRow(f"{word}_stuck", Place.VEHICLE, f"The {word} repeats its last reading{frozen}.", Effect.FREEZE, (float(unit),)),
        FaultRow(f"{word}_off", Place.VEHICLE, f"The {word} gives nothing{off}.", Effect.SILENCE, (float(unit),)),
    )


def _reading(unit: Unit, word: str, measure: str, axes: str, bias: float, noise: float, limit: float | None = None) -> tuple[FaultRow, ...]:
    """Faults of a vehicle's sensor with readings in a unit, which is the end of its keys' names."""
    biases = tuple(Key(f"{axis}_{measure}", "Error of the reading" + f" on {axis}" * (axes != "bias"), 0.0, -1e6, 1e6) for axis in axes.split())
    rows = [
        FaultRow(
            f"{word}_biased",
            Place.VEHICLE,
            f"Readings of the {word} are off by a constant; with a ramp they drift.",
            Effect.BIAS,
            (float(unit), *(key.name for key in biases)),
            (biases[0]._replace(default=bias), *biases[1:]),
        ),
        FaultRow(
            f"{word}_noisy",
            Place.VEHICLE,
            f"Readings of the {word} scatter more than they should.",
            Effect.NOISE,
            (float(unit), f"noise_{measure}"),
            (Key(f"noise_{measure}", "Standard deviation of the further error", noise, 0, 1e6),),
        ),
    ]
    if limit is not None:
        key = Key(f"limit_{measure}", "Largest reading of an axis", limit, 0, 1e6)
        text = f"The {word} is at the end of its range: readings are cut off."
        rows.append(FaultRow(f"{word}_clipped", Place.VEHICLE, text, Effect.CLIP, (float(unit), key.name), (key,)))
    frozen = " to the last bit; PX4 gives it up after a hundred of them"
    return (*rows, *_silent(unit, word, frozen, ": its fields are not marked as new"))


_BEARING = Key("bearing_deg", "Direction, clockwise from north", 90.0, 0, 360)
_MOTORS = Key("motors", "Numbers of the motors, from 1, in the order of the profile's rotors", REQUIRED, 1, 16, tuple[int, ...])
_SPEED = Key("speed_mps", "Speed over ground at which the position runs away", 2.0, 0, 300)
_CLIMB = Key("climb_mps", "Speed upwards at which it runs away", 0.0, -100, 100)


FAULTS: tuple[FaultRow, ...] = (
    FaultRow(
        "dead_channel",
        Place.SENSOR,
        "Lasers, or their detectors, are out: each record is one without a return, with the byte of its laser.",
        Effect.DIM,
        (0.0,),
        _LASERS,
    ),
    FaultRow(
        "weak_channel",
        Place.SENSOR,
        "Lasers are weak: they see less far, and report less; with a ramp they age.",
        Effect.DIM,
        ("transmission",),
        (*_LASERS, _transmission(0.5)),
    ),
    FaultRow("blocked_sector", Place.SENSOR, "A leaf, tape or mud covers the window: nothing returns from the sector.", Effect.DIM, (0.0,), SECTOR),
    FaultRow(
        "dirty_window",
        Place.SENSOR,
        "Dust or mud: far and dark things are missing first.",
        Effect.DIM,
        ("transmission",),
        (*SECTOR, _transmission(0.6)),
    ),
    FaultRow(
        "iced_window", Place.SENSOR, "Ice on the whole window, or a sector of it.", Effect.DIM, ("transmission",), (*SECTOR, _transmission(0.5))
    ),
    FaultRow(
        "wet_window",
        Place.SENSOR,
        "Drops on the window, which run down: patches that move, with fewer returns.",
        Effect.DROPS,
        ("drops", "drop_deg", "transmission", "speed_dps"),
        (
            *SECTOR,
            Key("drops", "Number of drops", 12, 1, 100),
            Key("drop_deg", "Width of a drop", 3.0, 0.1, 30),
            _transmission(0.5),
            Key(
                "speed_dps",
                "Speed downwards, in degrees of elevation a second; a drop that has left at the bottom is followed by one at the top",
                2.0,
                0,
                100,
            ),
        ),
    ),
    FaultRow(
        "glare",
        Place.SENSOR,
        "Strong light in the sector: a share of the points is scattered about its place.",
        Effect.ERROR,
        (0.0, "scatter_m", 0.0),
        (*SECTOR[:3], _SHARE._replace(default=0.03), Key("scatter_m", "Standard deviation of their ranges", 2.0, 0, 50)),
    ),
    FaultRow(
        "crosstalk",
        Place.SENSOR,
        "Pulses of other units: single points at ranges at random, beside the true echo.",
        Effect.ECHO,
        (0.0, "max_range_m", 0.0, 1.0, 0.0),
        (*SECTOR[:3], _SHARE._replace(default=0.01), Key("max_range_m", "Largest range; the model's where that is less", 100.0, 1, 1000)),
    ),
    FaultRow(
        "jamming",
        Place.SENSOR,
        "A source blinds the sensor in a sector: ranges and reflectivities at random in place of all echoes.",
        Effect.ECHO,
        (0.0, "max_range_m", 0.0, 1.0, 1.0),
        (*SECTOR, Key("max_range_m", "Largest range; the model's where that is less", 100.0, 1, 1000)),
    ),
    FaultRow(
        "spoofed_surface",
        Place.SENSOR,
        "An attacker's surface that is not there: an echo at one range, beside the true ones.",
        Effect.ECHO,
        ("range_m", "range_m", "reflectivity", "reflectivity", 0.0),
        (*SECTOR, Key("range_m", "Its range", 10.0, 0, 1000), Key("reflectivity", "Its reflectivity, 1 for white", 1.0, 0, 10)),
    ),
    FaultRow(
        "removed_surface",
        Place.SENSOR,
        "An attacker pulls echoes below the smallest range, and the sensor leaves them out.",
        Effect.ECHO,
        (0.0, 0.0, 1.0, 1.0, 1.0),
        SECTOR,
    ),
    FaultRow(
        "range_bias",
        Place.SENSOR,
        "Ranges drift, as with temperature: by the same amount for all lasers, and by one of its own for each.",
        Effect.ERROR,
        ("bias_m", 0.0, "spread_m"),
        (
            *SECTOR,
            Key("bias_m", "Error of all lasers", 0.03, -100, 100),
            Key("spread_m", "Standard deviation of the error over the lasers", 0.0, 0, 10),
        ),
    ),
    FaultRow(
        "range_noise",
        Place.SENSOR,
        "Ranges scatter more than they should.",
        Effect.ERROR,
        (0.0, "scatter_m", 0.0),
        (*SECTOR, Key("scatter_m", "Standard deviation of the further error", 0.1, 0, 50)),
    ),
    FaultRow(
        "reflectivity_lost",
        Place.SENSOR,
        "The calibration of reflectivities is lost: stripes, a laser each.",
        Effect.BYTE,
        ("spread", "factor"),
        (
            *SECTOR,
            Key("spread", "Standard deviation of the factor over the lasers", 0.2, 0, 2),
            Key("factor", "Mean factor", 1.0, 0, 10),
        ),
    ),
    FaultRow(
        "mixed_firmware",
        Place.SENSOR,
        "Records are in the places of other lasers, as of units whose firmware is mixed up.",
        Effect.ORDER,
        ("channels_by",),
        (Key("channels_by", "By how many channels", 8, 1, 127),),
    ),
    FaultRow("encoder_stuck", Place.SENSOR, "The encoder repeats the reading that it had: the head turns on.", Effect.READING, (1.0, 0.0, 0.0)),
    FaultRow(
        "encoder_jump",
        Place.SENSOR,
        "The encoder has lost or gained marks: readings are off by an angle.",
        Effect.READING,
        (0.0, "jump_cdeg", 0.0),
        (Key("jump_cdeg", "Angle in hundredths of a degree", 200.0, -35999, 35999),),
    ),
    FaultRow(
        "encoder_overflow",
        Place.SENSOR,
        "Readings go on beyond the turn, 36000 and more, as firmware of 2012 sent at the seam.",
        Effect.READING,
        (0.0, 0.0, "beyond_cdeg"),
        (Key("beyond_cdeg", "Hundredths of a degree after the seam that are counted on", 100.0, 1, 29535),),
    ),
    FaultRow(
        "motor_stall",
        Place.SENSOR,
        "The motor runs down and stands: azimuths creep and repeat, packets go on.",
        Effect.TURN,
        (-1.0, 0.0, 0.0),
        (_RUN_DOWN,),
    ),
    FaultRow(
        "spin_up",
        Place.SENSOR,
        "The head stands and comes up to its speed until the fault ends.",
        Effect.TURN,
        (-1.0, 0.0, 0.0),
        (
            Key("for_s", "How long it takes", 8.0, 0.1, 1e8),
            Key("ramp_out_s", "Time of that in which it comes up", 8.0, 0.0, 1e8),
        ),
    ),
    FaultRow(
        "wrong_rate",
        Place.SENSOR,
        "The motor is out of control: it turns too fast or too slowly.",
        Effect.TURN,
        ("too_fast", 0.0, 0.0),
        (Key("too_fast", "Share by which it is too fast; below 0: too slow", 0.02, -0.9, 1.0),),
    ),
    FaultRow(
        "lock_lost",
        Place.SENSOR,
        "The phase is not where it is locked: it leaps, and drifts.",
        Effect.TURN,
        (0.0, "slip_deg", "drift_dps"),
        (Key("slip_deg", "Angle of the leap", 30.0, -360, 360), Key("drift_dps", "Drift of the phase, in degrees a second", 0.0, -360, 360)),
    ),
    FaultRow(
        "clock_jump",
        Place.SENSOR,
        "Stamps leap.",
        Effect.STAMP,
        ("jump_s", 0.0, 0.0, 0.0, 0.0),
        (Key("jump_s", "Time by which they are ahead", 0.5, -1000, 1000),),
    ),
    FaultRow(
        "clock_drift",
        Place.SENSOR,
        "The clock is fast or slow: the more stamps are off, the longer it lasts.",
        Effect.STAMP,
        (0.0, "drift_ppm", 0.0, 0.0, 0.0),
        (Key("drift_ppm", "Gain; 58 is a free one's, 141 the most that recordings show", 58.0, -1e6, 1e6),),
    ),
    FaultRow(
        "leap_second",
        Place.SENSOR,
        "A leap second at its begin is not told apart: the second before it comes again.",
        Effect.STAMP,
        (-1.0, 0.0, 0.0, 0.0, 0.0),
    ),
    FaultRow(
        "hour_overflow",
        Place.SENSOR,
        "Stamps do not begin again at the hour: they count on beyond 3600 s.",
        Effect.STAMP,
        (0.0, 0.0, 0.0, 0.0, 1.0),
    ),
    FaultRow(
        "pps_noisy",
        Place.SENSOR,
        "Edges of the pulse come at times that scatter: stamps leap at each second.",
        Effect.STAMP,
        (0.0, 0.0, "jitter_s", 0.0, 0.0),
        (Key("jitter_s", "Standard deviation of an edge's time", 1e-3, 0, 0.2),),
    ),
    FaultRow(
        "pps_doubled",
        Place.SENSOR,
        "A second edge within the second, at a time at random: stamps begin the second again.",
        Effect.STAMP,
        (0.0, 0.0, 0.0, "share", 0.0),
        (Key("share", "Share of the seconds that have one", 1.0, 0, 1),),
    ),
    FaultRow(
        "pps_absent",
        Place.SENSOR,
        "The cable of the pulse is out: position packets say so, and the clock runs free.",
        Effect.PULSE,
        (0.0, "drift_ppm"),
        (Key("drift_ppm", "Gain of the free clock", 58.0, -1e6, 1e6),),
    ),
    FaultRow(
        "ptp_lost",
        Place.SENSOR,
        "The master that the clock follows over the network is gone: the clock runs free, and an Ouster's interface says so.",
        Effect.MASTER,
        (0.0, "drift_ppm"),
        (Key("drift_ppm", "Gain of the free clock", 58.0, -1e6, 1e6),),
    ),
    FaultRow("pps_error", Place.SENSOR, "Position packets report an error of the pulse.", Effect.PULSE, (3.0, 0.0)),
    FaultRow("nmea_missing", Place.SENSOR, "No sentence comes.", Effect.SENTENCE, (1.0, 0.0, 0.0, 0.0, 0.0)),
    FaultRow("nmea_invalid", Place.SENSOR, "The receiver has no fix: the status is V.", Effect.SENTENCE, (0.0, 1.0, 0.0, 0.0, 0.0)),
    FaultRow(
        "nmea_late",
        Place.SENSOR,
        "Sentences come late: position packets name the second before for longer.",
        Effect.SENTENCE,
        (0.0, 0.0, "delay_s", 0.0, 0.0),
        (Key("delay_s", "Time by which they are later", 0.5, 0, 10),),
    ),
    FaultRow(
        "nmea_wrong_second",
        Place.SENSOR,
        "Sentences name another second.",
        Effect.SENTENCE,
        (0.0, 0.0, 0.0, "seconds_by", 0.0),
        (Key("seconds_by", "Seconds by which they are ahead", -1.0, -3600, 3600),),
    ),
    FaultRow(
        "nmea_garbled",
        Place.SENSOR,
        "Characters of the sentence are wrong, and so is its checksum.",
        Effect.SENTENCE,
        (0.0, 0.0, 0.0, 0.0, "share"),
        (Key("share", "Share of the characters", 0.05, 0, 1),),
    ),
    FaultRow(
        "overheated",
        Place.SENSOR,
        "The sensor is too hot: it sends no data, and its position packets report a thermal shutdown, and the temperature.",
        Effect.THERMAL,
        (1.0, "temperature_c"),
        (Key("temperature_c", "Temperature at shutdown", 85, 0, 127),),
        NetworkAct(Effect.FLAP, (1e12, 0.0), "data"),
    ),
    FaultRow(
        BROWN_OUT,
        Place.SENSOR,
        "Power fails: nothing is sent for a time, then the clock counts from power-up, without the pulse.",
        Effect.STAMP,
        (0.0, "drift_ppm", 0.0, 0.0, 0.0, "off_ms"),
        (
            Key("off_ms", "Time without power; its clock counts from there on", 5000.0, 1, 1e7),
            Key("down_ms", "Time until it sends again", 15_000.0, 1, 1e7),
            Key("drift_ppm", "Gain of the free clock", 58.0, -1e6, 1e6),
        ),
        NetworkAct(Effect.FLAP, ("down_ms", 1e12)),
    ),
    FaultRow(
        "link_flap",
        Place.NETWORK,
        "A link is down, then up, again and again, from its begin on: nothing passes while it is down.",
        Effect.FLAP,
        ("down_ms", "up_ms"),
        (Key("down_ms", "Time down", 1000.0, 0.01, 1e7), Key("up_ms", "Time up; 0: it stays down", 9000.0, 0, 1e7)),
    ),
    FaultRow("loss", Place.NETWORK, "Datagrams are lost, each by itself.", Effect.LOSE, (1.0, 1.0, "share", "share"), (_LOST,)),
    _burst_loss(
        "burst_loss", "Datagrams are lost in bursts (Gilbert-Elliott, in time): a link changes between a good and a bad state.", 1000.0, 10.0
    ),
    _burst_loss("bad_cable", "A bad cable: bursts of two datagrams of a VLP-16, about one in five hundred is lost.", 1327.0, 2.65),
    _burst_loss("wifi", "Wi-Fi: bursts of three datagrams of a VLP-16, about 3 % are lost.", 133.0, 4.42),
    _burst_loss("loaded_switch", "A loaded switch: rare bursts of ten datagrams of a VLP-16, about one in a thousand is lost.", 13_270.0, 13.27),
    FaultRow(
        "corrupt",
        Place.NETWORK,
        "Bits of payloads are changed: a share of all of them, and one of a `share` of the datagrams. Checksums are right, so receivers get them.",
        Effect.CORRUPT,
        ("bit_error_ratio", "share"),
        (
            Key("bit_error_ratio", "Share of all bits", 0.0, 0, 0.01),
            _LOST._replace(meaning="Share of the datagrams of which one random bit is changed"),
        ),
    ),
    FaultRow(
        "truncate",
        Place.NETWORK,
        "Payloads end too early.",
        Effect.CUT,
        ("share", "payload_bytes"),
        (_LOST, Key("payload_bytes", "Bytes that are left; shorter payloads stay as they are", 600, 0, 65_507)),
    ),
    FaultRow(
        "bad_checksum",
        Place.NETWORK,
        'Checksums are wrong, and the receiver\'s kernel discards the frame (`mode = "ethernet"`).',
        Effect.CHECKSUM,
        ("share", "ip_share"),
        (_LOST._replace(meaning="Share of the frames with a wrong UDP checksum"), Key("ip_share", "Share with a wrong IP checksum", 0.0, 0, 1)),
    ),
    FaultRow(
        "vlan",
        Place.NETWORK,
        'Frames have a tag of IEEE 802.1Q that the receiver does not expect (`mode = "ethernet"`).',
        Effect.TAG,
        ("vlan", "priority"),
        (Key("vlan", "Number of the VLAN; 0: a tag with a priority alone", 1, 0, 4094), Key("priority", "Priority", 0, 0, 7)),
    ),
    FaultRow(
        "hold",
        Place.NETWORK,
        "A switch or a host stalls again and again: it holds what arrives, and then sends all of it at the rate of the line.",
        Effect.QUEUE,
        ("hold_ms", "every_ms", "line_bps", "queue_bytes"),
        (
            Key("hold_ms", "Time for which it stalls, at the begin of each period", 20.0, 0.01, 10_000),
            Key("every_ms", "Period", 1000.0, 0.02, 1e7),
            Key("line_bps", "Rate of the line; a datagram has 66 bytes beside its payload there", 1e9, 1e4, 1e12),
            _QUEUE_BYTES,
        ),
    ),
    FaultRow(
        "rate_limit",
        Place.NETWORK,
        "A line that is too slow: its queue fills, and what has no room is lost (tail drop).",
        Effect.QUEUE,
        (0.0, 1.0, "rate_bps", "queue_bytes"),
        (
            Key("rate_bps", "Rate of the line; a datagram has 66 bytes beside its payload there", 1e7, 1e4, 1e12),
            _QUEUE_BYTES._replace(default=100_000),
        ),
    ),
    _delay("delay", "Datagrams arrive later, by a fixed time and a uniform jitter.", Jitter.UNIFORM, "Most that is added or taken away"),
    _delay(
        "normal_delay",
        "Datagrams arrive later, by a normal distribution; `jitter_ms` is its standard deviation.",
        Jitter.NORMAL,
        "Standard deviation",
    ),
    _delay(
        "pareto_delay",
        "Datagrams arrive later, by a distribution with a long tail (Lomax of shape 3); `jitter_ms` is the mean of what it adds.",
        Jitter.PARETO,
        "Mean of what is added, which is at most a hundred times that",
    ),
    FaultRow(
        "reorder",
        Place.NETWORK,
        "Some datagrams are overtaken by those after them.",
        Effect.REORDER,
        ("share", "delay_ms"),
        (_LOST, _DELAY_MS._replace(meaning="Longest delay of these, which is uniform: it is overtaken by what is due meanwhile", default=5.0)),
    ),
    FaultRow(
        "duplicate",
        Place.NETWORK,
        "Some datagrams arrive twice.",
        Effect.REPEAT,
        ("share", "delay_ms"),
        (_LOST, _DELAY_MS._replace(meaning="Time from a datagram to its copy", default=0.0)),
    ),
    FaultRow(
        "fragments",
        Place.NETWORK,
        'Frames are cut into fragments of IP (`mode = "ethernet"`).',
        Effect.FRAGMENT,
        ("share", "mtu_bytes", "swapped_share"),
        (
            _LOST._replace(default=1.0),
            Key("mtu_bytes", "Largest IP packet", 576, 68, 65_535),
            Key("swapped_share", "Share of those whose last fragment leaves first", 1.0, 0, 1),
        ),
    ),
    *_reading(Unit.ACCELEROMETER, "accelerometer", "mps2", "x y z", 0.5, 1.0, 20.0),
    *_reading(Unit.GYROSCOPE, "gyroscope", "radps", "x y z", 0.05, 0.05, 0.5),
    *_reading(Unit.COMPASS, "compass", "gauss", "x y z", 0.2, 0.05, 0.2),
    *_reading(Unit.BAROMETER, "barometer", "pa", "bias", 60.0, 30.0),
    FaultRow(
        "gps_jump",
        Place.VEHICLE,
        "The position is another one: fix, accuracy and velocity say nothing of it.",
        Effect.SHIFT,
        ("distance_m", "bearing_deg", "up_m"),
        (Key("distance_m", "Distance over ground", 100.0, 0, 1e6), _BEARING, Key("up_m", "Distance upwards", 0.0, -10_000, 10_000)),
    ),
    FaultRow(
        "gps_drift",
        Place.VEHICLE,
        "The position runs away at a constant speed, and the velocity says so: an estimator believes it.",
        Effect.DRIFT,
        ("speed_mps", "bearing_deg", "climb_mps", 0.0),
        (_SPEED, _BEARING, _CLIMB),
    ),
    FaultRow(
        "gps_smooth_drift",
        Place.VEHICLE,
        "A spoofer pulls the position away, ever faster.",
        Effect.DRIFT,
        ("speed_mps", "bearing_deg", "climb_mps", "settling_s"),
        (_SPEED, _BEARING, _CLIMB, Key("settling_s", "Time constant of the speed", 5.0, 0.001, 1000)),
    ),
    FaultRow(
        "gps_garbage",
        Place.VEHICLE,
        "No fix for one to six seconds, then a bad one: few satellites, great errors, wrong velocities.",
        Effect.JAM,
        (0.0, 2.0, 20.0, 54.0, 6.0),
    ),
    FaultRow(
        "gps_jammed",
        Place.VEHICLE,
        "A jammer: no fix for one to six seconds, then positions and velocities that jump.",
        Effect.JAM,
        ("scatter_m", "scatter_mps", 1.0, 300.0, 16.0),
        (Key("scatter_m", "Most that a position is off", 200.0, 0, 10_000), Key("scatter_mps", "Most that a velocity is off", 300.0, 0, 300)),
    ),
    *_silent(Unit.GPS, "gps", " and its time", ": no fix is sent"),
    FaultRow("motor_dead", Place.MOTOR, "Motors stand still.", Effect.THRUST, (0.0,), (_MOTORS,)),
    FaultRow(
        "motor_weak",
        Place.MOTOR,
        "Motors or propellers are weak: they give a share of the thrust.",
        Effect.THRUST,
        ("thrust",),
        (_MOTORS, Key("thrust", "Share of the thrust", 0.7, 0, 1)),
    ),
    FaultRow(
        "byte_loss", Place.LINE, "Bytes are lost, each by itself.", Effect.DROP_BYTES, ("share",), (Key("share", "Share of the bytes", 0.001, 0, 1),)
    ),
    FaultRow(
        "bit_errors",
        Place.LINE,
        "Bits are wrong, each by itself: frames fail their checksums.",
        Effect.FLIP_BITS,
        ("bit_error_ratio",),
        (Key("bit_error_ratio", "Share of the bits", 1e-5, 0, 1),),
    ),
    FaultRow(
        "half_frames",
        Place.LINE,
        "What is written at once ends too early, at a byte at random.",
        Effect.HALVE,
        ("share",),
        (Key("share", "Share of the frames", 0.01, 0, 1),),
    ),
    FaultRow(
        "adapter_latency",
        Place.LINE,
        "A USB adapter holds bytes until its timer runs out or a transfer is full, as FTDI's do.",
        Effect.LATENCY,
        ("timer_ms", "transfer_bytes"),
        (Key("timer_ms", "Time of its timer", 16.0, 1, 255), Key("transfer_bytes", "Bytes of a transfer", 62, 1, 4096)),
    ),
    FaultRow("cable_out", Place.LINE, "The cable is out: the port is closed, and opened again when the fault ends.", Effect.UNPLUG, ()),
    FaultRow(
        "range_wrong",
        Place.RANGE,
        "Ranges are off, or scatter.",
        Effect.MISREAD,
        ("bias_m", "scatter_m"),
        (Key("bias_m", "Error of all ranges", 1.0, -1000, 1000), Key("scatter_m", "Standard deviation of the further error", 0.0, 0, 100)),
    ),
    FaultRow("range_stuck", Place.RANGE, "The sensor repeats the last range that it found.", Effect.KEEP, ()),
    FaultRow("range_off", Place.RANGE, "The sensor sends nothing.", Effect.MUTE, ()),
)
"""Every fault, in the order in which those of one place act upon the same firing or datagram."""
