from facts import START_MS, intent, note
from swarmgate.telemetry.spans import MOST_OPEN, Spans


class Tracer:
    """Keeps what is told of spans: the API without an SDK keeps nothing."""

    def __init__(self):
        self.spans = []

    def start_span(self, name, parent, kind, attributes, *, start_time):
        self.spans.append(span := Span(name, parent, attributes, start_time))
        return span


class Span:
    def __init__(self, name, parent, attributes, start_time):
        self.name, self.parent, self.attributes, self.start, self.status, self.ended = (
            name,
            parent,
            attributes,
            start_time,
            None,
            None,
        )

    def set_status(self, status):
        self.status = status

    def end(self, at):
        self.ended = at


def test_a_span_reaches_from_the_send_to_the_end_and_belongs_to_the_callers_trace():
    tracer = Tracer()
    Spans(tracer).hear([intent(trace="ab" * 16), note(at_ms=START_MS + 2_000)])
    (span,) = tracer.spans
    assert (span.start, span.ended) == (START_MS * 10**6, (START_MS + 2_000) * 10**6)
    assert span.attributes["gen_ai.usage.input_tokens"] == 100
    assert span.attributes["swarmgate.key_id"] == "k1"
    assert span.parent is not None
    assert span.status is None


def test_a_failed_attempt_is_an_error_and_unknown_usage_is_not_said():
    tracer = Tracer()
    Spans(tracer).hear([intent(), note(kind="rate", reason="target_rate", prompt_tokens=-1, output_tokens=-1)])
    (span,) = tracer.spans
    assert span.attributes["error.type"] == "rate"
    assert "gen_ai.usage.input_tokens" not in span.attributes
    assert span.status.description == "target_rate"


def test_a_fetch_from_a_host_is_no_chat():
    tracer = Tracer()
    Spans(tracer).hear([intent(target="api.crossref.org", model=""), note(target="api.crossref.org", model="")])
    (span,) = tracer.spans
    assert span.name == span.attributes["server.address"] == "api.crossref.org"
    assert not {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"} & span.attributes.keys()


def test_notes_without_intent_are_passed_and_open_ones_bounded():
    tracer = Tracer()
    spans = Spans(tracer)
    spans.hear([note("unknown"), *[intent(f"c{number}") for number in range(MOST_OPEN + 5)]])
    assert tracer.spans == []
    assert len(spans._open) == MOST_OPEN


def test_without_an_sdk_nothing_happens():
    Spans().hear([intent(), note()])
