"""The models: the one table of what is known of each, each number with its source. Emulated sensors and readers of captures take it from here."""

import math
from dataclasses import dataclass

from hilsim.families.velodyne.protocol.data import BLOCK_FLAG, BLOCKS, RECORDS_PER_BLOCK, Product
from hilsim.families.velodyne.protocol.geometry import (
    HDL_32E_GEOMETRY,
    PUCK_HI_RES_GEOMETRY,
    VLP_16_GEOMETRY,
    VLP_32C_GEOMETRY,
    FiringGeometry,
    vls_128_geometry,
)

STEP_TOLERANCE_US = 4.0
"""Units with a steered clock have residuals up to 2 us, so two stamps can differ by twice that."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Constants of one model.

    Attributes:
        geometry: Its name, and where its lasers look and when they fire.
        product: The factory byte.
        floor_raw: The smallest raw distance the firmware reports.
        floor_is_certain: The floor was seen as a sharp edge in captures; going below it is an error, else a warning.
        farthest_raw: Beyond every raw distance seen of it; farther is a warning.
        limit_raw: Farther is what 16 bits hold and not what a sensor measures.
        position_rates_hz: Ranges of position packet rates known of it.
        source: Source of the figures.
        has_imu: Position packets carry words of gyroscopes and accelerometers.
        stamps_last_firing: A data packet's stamp is of its last firing, not of its first.
        flags: Flags of the blocks of a packet, repeated: one for each bank of lasers.
        stamp_scatter_us: Scatter of stamps around a regular clock; 0: they are truncated from one.
    """

    geometry: FiringGeometry
    product: int
    floor_raw: int
    floor_is_certain: bool
    farthest_raw: int
    limit_raw: int
    position_rates_hz: tuple[tuple[float, float], ...]
    source: str
    has_imu: bool = False
    stamps_last_firing: bool = False
    flags: tuple[int, ...] = (BLOCK_FLAG,)
    stamp_scatter_us: float = 0.0

    @property
    def name(self) -> str:
        """As in the data sheets."""
        return self.geometry.model

    @property
    def channels(self) -> int:
        """Lasers."""
        return len(self.geometry.elevation_deg)

    @property
    def sequence_ns(self) -> int:
        """One firing sequence of all lasers."""
        return self.geometry.sequence_ns

    @property
    def packet_sequences(self) -> int:
        """Firing sequences in a packet of one return each."""
        return BLOCKS * RECORDS_PER_BLOCK // self.channels

    @property
    def distance_unit_mm(self) -> int:
        """Unit of the raw distance."""
        return round(self.geometry.distance_unit_mm)

    def group_blocks(self, *, is_dual: bool) -> int:
        """Number of consecutive blocks with one azimuth: one for each bank of lasers and return."""
        return len(self.flags) * (2 if is_dual else 1)

    def used_blocks(self, *, is_dual: bool) -> int:
        """Number of a packet's first blocks that hold firings, in whole groups; the others are padding."""
        return BLOCKS - BLOCKS % self.group_blocks(is_dual=is_dual)

    @property
    def step_tolerance_us(self) -> float:
        """Largest difference of a step of the stamps from whole cycles, however long it is: that of a steered clock, and thrice the scatter of two stamps."""
        return STEP_TOLERANCE_US + 3.0 * math.sqrt(2.0) * self.stamp_scatter_us

    def cycle_us(self, *, is_dual: bool) -> float:
        """Time between packets; a dual packet holds half the firings, in whole firing sequences."""
        return self.packet_sequences // (2 if is_dual else 1) * self.sequence_ns / 1000.0


VLP_16 = Model(
    geometry=VLP_16_GEOMETRY,
    product=Product.VLP_16,
    floor_raw=250,
    floor_is_certain=True,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=((45.0, 62.0), (95.0, 104.0), (125.0, 165.0)),
    source="manual 63-9243 pages 49-62; floor 0.500 m and largest distance 109.85 m in public captures; position rate 1/14 by the manual, 135-150/s measured,"
    " 99.6/s at 300 rpm with a limited view",
)
PUCK_HI_RES = Model(
    geometry=PUCK_HI_RES_GEOMETRY,
    product=Product.PUCK_HI_RES,
    floor_raw=250,
    floor_is_certain=False,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=VLP_16.position_rates_hz,
    source="manual 63-9243 page 54; otherwise as the VLP-16",
)
VLP_32C = Model(
    geometry=VLP_32C_GEOMETRY,
    product=Product.VLP_32C,
    floor_raw=178,
    floor_is_certain=False,
    farthest_raw=56_250,
    limit_raw=62_500,
    position_rates_hz=((95.0, 165.0),),
    source="manual 63-9325 pages 51-66; floor 0.712 m in a public capture; range 200 m (single mention), 225 m taken as out of reach",
)
HDL_32E = Model(
    geometry=HDL_32E_GEOMETRY,
    product=Product.HDL_32E,
    floor_raw=25,
    floor_is_certain=False,
    farthest_raw=60_000,
    limit_raw=65_000,
    position_rates_hz=((190.0, 210.0),),
    has_imu=True,
    # the timing text of page 9 and the formula of appendix E, which is 0 for block 11 and laser 31; the format's table gives the first firing
    stamps_last_firing=True,
    source="HDL-32E manual page 9 and appendix E; largest distance 105.3 m and 200 position packets/s in a public capture",
)
_VLS_128_SEQUENCES_NS = (55_296, 53_300, 57_800)
"""As measured on a public capture (55.28 us), by the draft manual, and as a decoder notes of later firmware."""
VLS_128_VARIANTS = tuple(
    Model(
        geometry=vls_128_geometry(sequence_ns),
        product=Product.VLS_128,
        floor_raw=125,
        floor_is_certain=False,
        farthest_raw=62_500,
        limit_raw=65_000,
        position_rates_hz=((125.0, 165.0), (400.0, 490.0)),
        source="manual 63-9483 (draft) pages 49-66; public capture: flags, 1.08 m to 238.7 m, stamps 5.7 us rms (up to 17) about a regular clock",
        flags=(0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF),
        stamp_scatter_us=5.7,
    )
    for sequence_ns in _VLS_128_SEQUENCES_NS
)
"""Their dual packets are those that decoders read: no capture of one was found."""
VLS_128 = VLS_128_VARIANTS[0]
MODELS = (VLP_16, PUCK_HI_RES, VLP_32C, HDL_32E)
BY_NAME = {model.name: model for model in (*MODELS, VLS_128)}
"""All of which is known where their lasers look."""
BY_PRODUCT = {model.product: model for model in MODELS}
OTHER_PRODUCTS = {0x23: "VLP-32A/B", 0x31: "Velarray", 0x63: "VLS-128 (draft manual)", Product.VLS_128: VLS_128.name}
"""Names of factory bytes whose models are not described here."""


def is_multiple(step_us: float, cycle_us: float) -> bool:
    """Whether a step is a positive whole number of cycles, as after lost packets."""
    cycles = round(step_us / cycle_us)
    return cycles >= 1 and abs(step_us - cycles * cycle_us) <= STEP_TOLERANCE_US


def model_by_step(step_us: float, *, is_dual: bool) -> Model | None:
    """The first model whose packets come that far apart."""
    return next((model for model in MODELS if abs(step_us - model.cycle_us(is_dual=is_dual)) <= STEP_TOLERANCE_US), None)


def identify_model(product: int, step_us: float | None, *, is_dual: bool) -> Model | None:
    """The model by its factory byte, except for an early VLP-16 that sends the HDL-32E's; by the packets' step where the byte is unknown.

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


def vls_128_variant(step_us: float | None, *, is_dual: bool) -> Model:
    """The variant of a VLS-128 by its packets' step.

    Args:
        step_us: Median of the differences of neighbouring packets' stamps; None: the variant that was measured.
        is_dual: The packets are of dual return mode.
    """
    if step_us is None:
        return VLS_128
    return min(VLS_128_VARIANTS, key=lambda variant: abs(variant.cycle_us(is_dual=is_dual) - step_us))
