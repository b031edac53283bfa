"""The checker's rules for Cepton streams: STDV points and INFZ information."""

from hilsim.families.cepton.conformance.sensor import OLDER_SIGNATURES, CeptonCheck
from hilsim.families.cepton.protocol.info import INFO_SIGNATURE
from hilsim.families.cepton.protocol.stdv import STDV_SIGNATURE
from hilsim.read.analysis.conformance.part import Claim, ConformancePart

_SIGNATURES = frozenset((STDV_SIGNATURE, INFO_SIGNATURE, *OLDER_SIGNATURES))

PART = ConformancePart(
    label="Cepton",
    claim=lambda datagram: Claim.SURE if datagram.payload[:4] in _SIGNATURES else Claim.NONE,
    sensor=lambda source, _metadata: CeptonCheck(source),
)
