"""Statistics of streams of Velodyne sensors, and their differences."""

from hilsim.families.velodyne.comparison.comparison import compare, draw_panels
from hilsim.families.velodyne.comparison.statistics import STATISTICS
from hilsim.families.velodyne.comparison.stream import BLOCK_PACKETS, begin
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.comparison.part import ComparisonPart

PART = ComparisonPart(
    statistics=STATISTICS,
    packets="Velodyne data packets of one sensor and mode",
    is_data=lambda payload: recognise(payload) is VelodyneKind.DATA,
    first_packets=BLOCK_PACKETS,
    block_packets=BLOCK_PACKETS,
    begin=begin,
    compare=compare,
    draw_panels=draw_panels,
)
