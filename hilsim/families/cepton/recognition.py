"""Recognition of Cepton packets, which begin with their name."""

from hilsim.families.cepton.protocol.stdv import read_stdv_header
from hilsim.protocols.ethernet import LinkStyle
from hilsim.protocols.recognise import KindFacts, PacketKind

CEPTON_STYLE = LinkStyle(ttl=128, dont_fragment=False, counting_identification=True, udp_checksum=True)
"""TTL as measured on the public capture of the generation before; the other fields of this generation are not known."""


class CeptonKind(PacketKind):
    """Kinds of Cepton packets."""

    STDV = KindFacts("Cepton STDV points", "cepton", "points", has_points=True, is_decoded=True, style=CEPTON_STYLE)
    STDT = KindFacts("Cepton STDT points", "cepton", "points", has_points=True, style=CEPTON_STYLE)
    INFO = KindFacts("Cepton INFO", "cepton", "info", port_step=0, style=CEPTON_STYLE)
    INFZ = KindFacts("Cepton INFZ", "cepton", "info", port_step=0, style=CEPTON_STYLE)


_NAMES = {b"STDT": CeptonKind.STDT, b"INFO": CeptonKind.INFO, b"INFZ": CeptonKind.INFZ}


def recognise(payload: bytes) -> CeptonKind | None:
    """The kind of a payload; of STDV packets the header must be valid."""
    return CeptonKind.STDV if read_stdv_header(payload) is not None else _NAMES.get(payload[:4])
