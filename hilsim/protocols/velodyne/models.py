"""What distinguishes the models on the wire, each number with its source."""

from dataclasses import dataclass

from hilsim.protocols.velodyne.data import BLOCK_FLAG, Product

_EVENS_THEN_ODDS_16 = (*range(0, 16, 2), *range(1, 16, 2))
_EVENS_THEN_ODDS_32 = (*range(0, 32, 2), *range(1, 32, 2))


@dataclass(frozen=True, kw_only=True)
class Model:
    """Constants of one model.

    Attributes:
        name: As in the data sheets.
        product: The factory byte.
        channels: Lasers.
        sequence_ns: One firing sequence of all lasers.
        packet_sequences: Firing sequences in a packet of one return each.
        distance_unit_mm: Of the raw distance.
        floor_raw: The smallest raw distance the firmware reports.
        floor_is_certain: The floor was seen as a sharp edge in captures; going below it is an error, else a warning.
        farthest_raw: Beyond every raw distance seen of it; farther is a warning.
        limit_raw: Farther is what 16 bits hold and not what a sensor measures.
        position_rates_hz: Ranges of position packet rates known of it.
        elevation_order: Laser ids from lowest to highest beam, or None where the beams do not share one azimuth.
        source: Where the numbers are from.
        flags: Of the blocks of a packet, over and over: one a bank of lasers.
        stamp_scatter_us: How far stamps scatter about a regular clock; 0: they are cut from one.
    """

    name: str
    product: int
    channels: int
    sequence_ns: int
    packet_sequences: int
    distance_unit_mm: int
    floor_raw: int
    floor_is_certain: bool
    farthest_raw: int
    limit_raw: int
    position_rates_hz: tuple[tuple[float, float], ...]
    elevation_order: tuple[int, ...] | None
    source: str
    flags: tuple[int, ...] = (BLOCK_FLAG,)
    stamp_scatter_us: float = 0.0

    def cycle_us(self, *, is_dual: bool) -> float:
        """Time between packets; a dual packet holds half the firings."""
        return self.packet_sequences * self.sequence_ns / 1000.0 / (2 if is_dual else 1)


VLP_16 = Model(
    name="VLP-16",
    product=Product.VLP_16,
    channels=16,
    sequence_ns=55_296,
    packet_sequences=24,
    distance_unit_mm=2,
    floor_raw=250,
    floor_is_certain=True,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=((45.0, 62.0), (125.0, 165.0)),
    elevation_order=_EVENS_THEN_ODDS_16,
    source="manual 63-9243 pages 49-62; floor 0.500 m and largest distance 109.85 m in public captures; position rate 1/14 by the manual, 135-150/s measured",
)
PUCK_HI_RES = Model(
    name="Puck Hi-Res",
    product=Product.PUCK_HI_RES,
    channels=16,
    sequence_ns=55_296,
    packet_sequences=24,
    distance_unit_mm=2,
    floor_raw=250,
    floor_is_certain=False,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=VLP_16.position_rates_hz,
    elevation_order=_EVENS_THEN_ODDS_16,
    source="manual 63-9243 page 54; otherwise as the VLP-16",
)
VLP_32C = Model(
    name="VLP-32C",
    product=Product.VLP_32C,
    channels=32,
    sequence_ns=55_296,
    packet_sequences=12,
    distance_unit_mm=4,
    floor_raw=178,
    floor_is_certain=False,
    farthest_raw=56_250,
    limit_raw=62_500,
    position_rates_hz=((95.0, 165.0),),
    elevation_order=None,
    source="manual 63-9325 pages 51-66; floor 0.712 m in a public capture; range 200 m (single mention), 225 m taken as out of reach",
)
HDL_32E = Model(
    name="HDL-32E",
    product=Product.HDL_32E,
    channels=32,
    sequence_ns=46_080,
    packet_sequences=12,
    distance_unit_mm=2,
    floor_raw=25,
    floor_is_certain=False,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=((190.0, 210.0),),
    elevation_order=_EVENS_THEN_ODDS_32,
    source="HDL-32E manual page 9 and appendix E; largest distance 105.3 m and 200 position packets/s in a public capture",
)
_VLS_128_SEQUENCES_NS = (55_296, 53_300, 57_800)
"""As measured on a public capture (55.28 us), by the draft manual, and as a decoder notes of later firmware."""
VLS_128_VARIANTS = tuple(
    Model(
        name="VLS-128",
        product=Product.VLS_128,
        channels=128,
        sequence_ns=sequence_ns,
        packet_sequences=3,
        distance_unit_mm=4,
        floor_raw=125,
        floor_is_certain=False,
        farthest_raw=62_500,
        limit_raw=65_000,
        position_rates_hz=((125.0, 165.0), (400.0, 490.0)),
        elevation_order=None,
        source="manual 63-9483 (draft) pages 49-66; public capture: flags, 1.08 m to 238.7 m, stamps 5.7 us rms (up to 17) about a regular clock",
        flags=(0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF),
        stamp_scatter_us=5.7,
    )
    for sequence_ns in _VLS_128_SEQUENCES_NS
)
"""Single return only: no capture of a dual one was found. Not among ``MODELS``: nothing but its stream's form is known here."""
MODELS = (VLP_16, PUCK_HI_RES, VLP_32C, HDL_32E)
BY_PRODUCT = {model.product: model for model in MODELS}
VLS_128_NAME = "VLS-128"
OTHER_PRODUCTS = {0x23: "VLP-32A/B", 0x31: "Velarray", 0x63: "VLS-128 (draft manual)", Product.VLS_128: VLS_128_NAME}
"""Names of factory bytes whose models are not described here."""
STEP_TOLERANCE_US = 4.0  # units with a steered clock have residuals up to 2 us, so two stamps can differ by twice that


def is_multiple(step_us: float, cycle_us: float) -> bool:
    """Whether a step is a positive whole number of cycles, as after lost packets."""
    cycles = round(step_us / cycle_us)
    return cycles >= 1 and abs(step_us - cycles * cycle_us) <= STEP_TOLERANCE_US


def model_by_step(step_us: float, *, is_dual: bool) -> Model | None:
    """The first model whose packets come that far apart."""
    return next((model for model in MODELS if abs(step_us - model.cycle_us(is_dual=is_dual)) <= STEP_TOLERANCE_US), None)


def identify_model(product: int, step_us: float | None, *, is_dual: bool) -> Model | None:
    """The model by its factory byte, except for an early VLP-16 that says the HDL-32E's; by the packets' step where the byte says nothing.

    Args:
        product: The factory byte.
        step_us: Median of the differences of neighbouring packets' stamps, or None where too few are known.
        is_dual: The packets are of dual return mode.
    """
    named = BY_PRODUCT.get(product)
    if step_us is None:
        return named
    if named is None:
        return model_by_step(step_us, is_dual=is_dual)
    if named is HDL_32E and not is_multiple(step_us, HDL_32E.cycle_us(is_dual=is_dual)) and model_by_step(step_us, is_dual=is_dual) is VLP_16:
        return VLP_16
    return named
