"""
OpenTelemetry spans of attempts, made from journal rows after the fact; names of the GenAI conventions stand here only.

Only the API is used: without an SDK that the operator installs, spans go nowhere and cost nothing. A span is linked to the
caller's trace by its `traceparent`, of which the trace id is on file.
"""

from collections.abc import Iterable
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer
from opentelemetry.util.types import AttributeValue

from swarmgate.stores.journal import rows

MOST_OPEN: Final = 20_000
_NS: Final = 1_000_000


class Spans:
    """`hear` rows in order: an intent opens a span, its note ends it."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("swarmgate")
        self._is_told = tracer is not None
        self._open: dict[tuple[str, int], rows.Intent] = {}

    def hear(self, batch: Iterable[rows.Row]) -> None:
        """Make the spans of attempts that ended; none where nobody has installed an SDK that takes them."""
        if not self._is_told and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return
        for row in batch:
            if isinstance(row, rows.Intent) and len(self._open) < MOST_OPEN:
                self._open[row.call, row.attempt] = row
            elif isinstance(row, rows.Note):
                intent = self._open.pop((row.call, row.attempt), None)
                if intent is not None:
                    self._span(intent, row)

    def _span(self, intent: rows.Intent, note: rows.Note) -> None:
        parent = None
        if len(intent.trace) == 32:
            context = SpanContext(int(intent.trace, 16), 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            parent = trace.set_span_in_context(NonRecordingSpan(context))
        span = self._tracer.start_span(
            f"chat {intent.model}" if intent.model else intent.target,
            parent,
            SpanKind.CLIENT,
            _attributes(intent, note),
            start_time=intent.at_ms * _NS,
        )
        if note.kind != "ok":
            span.set_status(Status(StatusCode.ERROR, note.reason))
        span.end(note.at_ms * _NS)


def _attributes(intent: rows.Intent, note: rows.Note) -> dict[str, AttributeValue]:
    """OpenTelemetry semantic conventions, gen-ai 1.37; what they have no word for is `swarmgate.*`."""
    told: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "chat" if intent.model else "",
        "gen_ai.provider.name": intent.target if intent.model else "",
        "server.address": "" if intent.model else intent.target,
        "gen_ai.request.model": intent.model,
        "gen_ai.agent.id": intent.agent,
        "http.response.status_code": note.status,
        "error.type": "" if note.kind == "ok" else note.kind,
        "gen_ai.usage.input_tokens": note.prompt_tokens,
        "gen_ai.usage.output_tokens": note.output_tokens,
        "swarmgate.usage_estimated": note.estimated or "",
        "swarmgate.request_id": intent.call,
        "swarmgate.key_id": intent.key,
        "swarmgate.attempt": intent.attempt,
        "swarmgate.rung": intent.rung,
        "swarmgate.priority": f"P{intent.priority}",
        "swarmgate.goal": intent.goal,
        "swarmgate.step": intent.step,
        "swarmgate.task_type": intent.task_type,
        "swarmgate.limit_revision": intent.revision,
        "swarmgate.queue_ms": note.queue_ms,
    }
    return {name: value for name, value in told.items() if value not in ("", -1)}
