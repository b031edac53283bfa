"""Comparison of the statistics of two streams of Ouster sensors of one product line, profile and mode."""

from hilsim.families.ouster.comparison.comparison import compare, draw_panels
from hilsim.families.ouster.comparison.statistics import STATISTICS
from hilsim.families.ouster.comparison.stream import BLOCK_PACKETS, begin
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.comparison.part import ComparisonPart

PART = ComparisonPart(
    statistics=STATISTICS,
    packets="Ouster lidar packets of one sensor",
    is_data=lambda payload: recognise(payload) is OusterKind.LIDAR,
    first_packets=1,
    block_packets=BLOCK_PACKETS,
    begin=begin,
    compare=compare,
    draw_panels=draw_panels,
)
