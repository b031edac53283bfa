"""Read a daemon's ``/metrics`` page as a mapping."""

import http.client
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from hilsim.errors import TransmitError

_ANSWER_S = 10.0


class Metrics(Mapping[str, float]):
    """Values of one scrape by sample, such as ``hilsim_sent_packets_total{flow="data",sensor="roof"}``, with labels in alphabetical order.

    docs/reference/metrics.md lists all metrics.
    """

    def __init__(self, text: str) -> None:
        """Parse a page in Prometheus' text format."""
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        self._values = {_spelled(sample.name, sample.labels): sample.value for sample in self._samples}

    def __getitem__(self, sample: str) -> float:
        return self._values[sample]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def total(self, name: str, **labels: str) -> float:
        """Sum a metric's samples that have these labels, whatever other labels they have.

        Args:
            name: Name of the metric, such as ``hilsim_sent_packets_total``.
            labels: Labels, such as ``sensor="roof"``.

        Raises:
            KeyError: no sample has this name and these labels.
        """
        found = [sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()]
        if not found:
            raise KeyError(_spelled(name, labels))
        return sum(found)


def scrape(address: str) -> str:
    """Request the text of a metrics page from the daemon directly, without a proxy.

    Args:
        address: Address ``http://HOST:PORT/metrics``.

    Raises:
        TransmitError: no daemon answers there.
    """
    parts = urlsplit(address)
    asking = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_ANSWER_S)
    try:
        asking.request("GET", parts.path, headers={"Accept": "text/plain"})
        answer = asking.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise TransmitError(f"metrics must be served at {address}, got {error}") from error
    finally:
        asking.close()
    if answer.status != http.client.OK:
        raise TransmitError(f"metrics must be served at {address}, got HTTP {answer.status}")
    return text


def _spelled(name: str, labels: Mapping[str, str]) -> str:
    return name + ("{" + ",".join(f'{label}="{labels[label]}"' for label in sorted(labels)) + "}" if labels else "")
