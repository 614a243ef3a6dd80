"""
Metrics by name, with bounded labels, in the format that Prometheus reads.

A metric has at most `MOST_SERIES` series; what comes after is counted under `other` and told in a metric of its own, so that
names which agents make up can neither fill the memory nor hide (design 2: P14).
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from swarmgate.telemetry.names import ALL, OVERFLOW, PREFIX, Name

MOST_SERIES: Final = 2_000
OTHER: Final = "other"
_MAKERS: Final = {"counter": Counter, "gauge": Gauge}

Metric = Counter | Gauge | Histogram


class Registry:
    """`add`, `observe` and `level` by name and label values, in the order of the name's labels; `render` for a scrape."""

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        # an instant beside each counter would double what every scrape reads
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self._most = most_series
        self._registry = CollectorRegistry(auto_describe=False)
        self._metrics: dict[str, Metric] = {name.name: self._made(name) for name in ALL}
        self._series: dict[str, dict[tuple[str, ...], Metric]] = {name.name: {} for name in ALL}
        self._counts: dict[str, dict[tuple[str, ...], int]] = {name.name: {} for name in ALL}  # since the last scrape

    def _made(self, name: Name) -> Metric:
        if name.kind == "histogram":
            return Histogram(PREFIX + name.name, name.meaning, name.labels, registry=self._registry, buckets=name.edges)
        made: Metric = _MAKERS[name.kind](PREFIX + name.name, name.meaning, name.labels, registry=self._registry)
        return made

    def _at(self, name: Name, labels: tuple[str, ...]) -> Metric:
        series = self._series[name.name]
        found = series.get(labels)
        if found is not None:
            return found
        if len(series) >= self._most and name is not OVERFLOW:
            self.add(OVERFLOW, name.name)
            return self._at_most(name)
        metric = self._metrics[name.name]
        found = series[labels] = metric.labels(*labels) if labels else metric
        return found

    def _at_most(self, name: Name) -> Metric:
        labels = (OTHER,) * len(name.labels)
        series = self._series[name.name]
        if labels not in series:
            series[labels] = self._metrics[name.name].labels(*labels)
        return series[labels]

    def add(self, name: Name, *labels: str, amount: int = 1) -> None:
        """Count: an integer here, which the next scrape adds to its counter."""
        counts = self._counts[name.name]
        if labels in counts:
            counts[labels] += amount
            return
        counter = self._at(name, labels)
        assert isinstance(counter, Counter)
        if labels in self._series[name.name]:
            counts[labels] = amount
        else:
            counter.inc(amount)

    def observe(self, name: Name, *labels: str, ms: int) -> None:
        """One duration of a histogram in seconds."""
        histogram = self._at(name, labels)
        assert isinstance(histogram, Histogram)
        histogram.observe(ms / 1_000)

    def level(self, name: Name, *labels: str, value: float) -> None:
        """Where a gauge stands."""
        gauge = self._at(name, labels)
        assert isinstance(gauge, Gauge)
        gauge.set(value)

    def forget(self, name: Name) -> None:
        """Drop every series of a gauge, before it is told anew."""
        self._metrics[name.name].clear()
        self._series[name.name].clear()

    def render(self) -> bytes:
        """Everything, as a scrape reads it (Prometheus text format 0.0.4)."""
        for name, counts in self._counts.items():
            for labels, amount in counts.items():
                counter = self._series[name][labels]
                assert isinstance(counter, Counter)
                counter.inc(amount)
            counts.clear()
        return generate_latest(self._registry)
