"""A daemon's ``/metrics`` page as a mapping."""

import http.client
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from hilsim.errors import TransmitError

_ANSWER_S = 10.0


class Metrics(Mapping[str, float]):
    """One scrape: values by sample, spelled ``hilsim_sent_packets_total{flow="data",sensor="roof"}`` with labels in the order of the alphabet.

    docs/reference/metrics.md lists all of them.
    """

    def __init__(self, text: str) -> None:
        """Of a page in Prometheus' text format."""
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        self._values = {_spelled(sample.name, sample.labels): sample.value for sample in self._samples}

    def __getitem__(self, sample: str) -> float:
        return self._values[sample]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def total(self, name: str, **labels: str) -> float:
        """Sum of a metric's samples that have these labels, whatever others they have.

        Args:
            name: Like ``hilsim_sent_packets_total``.
            labels: Like ``sensor="roof"``.

        Raises:
            KeyError: there is no such sample.
        """
        found = [sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()]
        if not found:
            raise KeyError(_spelled(name, labels))
        return sum(found)


def scrape(address: str) -> str:
    """The text of a metrics page, requested from the daemon directly, without a proxy.

    Args:
        address: ``http://HOST:PORT/metrics``.

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
