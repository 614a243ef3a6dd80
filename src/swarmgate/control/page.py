"""
A post-mortem as one page: tables always, drawings where matplotlib is installed (extra `plots`).

The page has no script and loads nothing. Whatever agents and targets wrote is escaped (reliability AZ-06).
"""

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from swarmgate.control.bands import Spell
from swarmgate.control.courses import Course, courses
from swarmgate.control.post_mortem import PostMortem
from swarmgate.control.tally import Ruling
from swarmgate.core.duration import shown_duration

_STYLE: Final = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.6em 0 1.6em}td,th{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td.at{white-space:nowrap}td:first-child,th:first-child{text-align:left}.verdict{font-size:1.3em;padding:.5em .8em;border-left:6px solid #888}"
    ".broke{border-color:#b00020}.wrong{border-color:#c77700}.right{border-color:#1b7f3b}svg{max-width:100%;height:auto}"
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MS: Final = 1_000
_INSTANT: Final = re.compile(r"[\d-]{10}T[\d:]{8}")


def shown_instant(at_ms: int) -> str:
    """An instant as people read it and as `--from` takes it, in UTC."""
    return datetime.fromtimestamp(at_ms / _MS, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def shown_money(micro: int | None) -> str:
    """Millionths as money; a price that nobody knows is said to be unknown."""
    return "unknown" if micro is None else f"{micro / 1_000_000:,.6f}"


def _shown_cost(micro: int, estimated: int, unknown: int) -> str:
    """A sum, how much of it is for tokens that were not told, and how many sends are not in it because nobody knows what they cost."""
    if unknown and not micro:
        return shown_money(None)
    of_it = f", of which {shown_money(estimated)} estimated" if estimated else ""
    return shown_money(micro) + of_it + (f", and {unknown:,} sends of unknown cost" if unknown else "")


Table = tuple[Sequence[str], Sequence[Sequence[object]]]


def tables(story: PostMortem) -> dict[str, Table]:
    """Every table of a post-mortem by its title: what the page and the terminal show."""
    incidents = [_incident(row) for row in story.incidents]
    found: dict[str, Table] = {
        **_traffic(story),
        **_callers(story),
        **_contexts(story),
        "What else happened": (("at", "what", "why", "detail"), incidents),
    }
    return {title: (head, [[_number(cell) for cell in row] for row in rows]) for title, (head, rows) in found.items()}


def _traffic(story: PostMortem) -> dict[str, Table]:
    """Limits, and what was sent and put off under them."""
    put_off = [
        (
            row["reason"],
            row["budget"],
            row["deferrals"],
            shown_duration(row["waited_ms"]),
            shown_duration(row["asked_ms"]),
        )
        for row in story.deferrals
    ]
    found = courses(story.rulings)
    return {
        "Limits in force, and what was sent under each": (
            ("limit", "rev", "from", "most in a window", "sent", "429s", "verdict", "because"),
            [_ruling(one) for one in story.rulings],
        ),
        f"Sent per {story.windows.window_ms / _MS:g} s": (
            ("from", "sent", "429s", "put off", *(course.name for course in found)),
            list(_windows(story, found)),
        ),
        "Put off": (("reason", "blocked by", "times", "waited before", "told to wait"), put_off),
    }


def _callers(story: PostMortem) -> dict[str, Table]:
    """Who sent it, and what became of it."""
    return {
        "Who caused it": (
            ("agent", "goal", "task type", "steps", "sent", "429s", "USD"),
            [(*_who(row), row["task_type"], row["steps"], *_sent(row)) for row in story.causes],
        ),
        "Busiest steps": (
            ("agent", "goal", "step", "task type", "sent", "429s", "USD"),
            [(*_who(row), row["step"], row["task_type"], *_sent(row)) for row in story.steps],
        ),
        "How its calls ended": (
            ("end", "reason", "calls", "agents"),
            [(row["end"], row["reason"], row["calls"], row["agents"]) for row in story.ends],
        ),
    }


def _contexts(story: PostMortem) -> dict[str, Table]:
    """What long prompts cost, in time and money."""
    return {
        "Latency and cost by context": (
            ("task type", "prompt", "calls", "mean ms", "P50 ms", "P99 ms", "output tokens", "USD per call"),
            [(one.task_type or "none", *one[1:7], shown_money(one.cost_micro)) for one in story.bands],
        ),
        "Latency and cost under each ceiling": (
            ("task type", "ceiling", "from", "calls", "mean ms", "P50 ms", "P99 ms", "longest prompt", "USD per call"),
            [_spell(one) for one in story.spells],
        ),
    }


def _number(cell: object) -> object:
    return f"{cell:,}" if isinstance(cell, int) else cell


def summary(story: PostMortem) -> list[tuple[str, str]]:
    """The story in a few figures."""
    return [
        ("sent", f"{story.sent:,}"),
        ("429s and the like from the target", f"{story.refused:,}"),
        ("put off by the gate", f"{story.put_off:,} ({story.put_off_percent:.1f} % of what wanted to leave)"),
        (
            "price of politeness",
            f"{_shown_hours(story.waited_hours)} waited, {_shown_hours(story.asked_hours)} told to wait",
        ),
        ("cost, USD", _shown_cost(story.cost_micro, story.estimated_micro, story.unpriced)),
        ("cut off by a crash of the gate", f"{story.crashed:,}"),
    ]


def page(story: PostMortem) -> str:
    """The whole document."""
    title = f"{story.target}, {shown_instant(story.span.from_ms)} to {shown_instant(story.span.to_ms)} UTC"
    parts = [
        f'<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=Content-Security-Policy content="{_POLICY}">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>",
        f"<p class='verdict {story.verdict.name.lower()}'>{escape(story.verdict.value)}</p>",
        _table(("", ""), summary(story)),
        drawing(story) or "<p>Drawings need matplotlib: <code>pip install matplotlib</code>.</p>",
    ]
    for name, (head, rows) in tables(story).items():
        parts.append(f"<h2>{escape(name)}</h2>")
        parts.append(_table(head, rows) if rows else "<p>None.</p>")
    return "\n".join(parts)


def drawing(story: PostMortem) -> str | None:
    """Sent per window beside the limit in force, and P99 per task type below it, as SVG; None without matplotlib."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  an extra; without it the tables remain
    except ImportError:
        return None
    figure = Figure(figsize=(10, 7 if story.moments else 4), layout="constrained")
    axes = figure.subplots(2 if story.moments else 1, sharex=True, squeeze=False)[:, 0]
    _draw_sent(axes[0], story)
    if story.moments:
        _draw_latency(axes[1], story)
    axes[-1].set_xlabel("minutes")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def _draw_sent(axes: Any, story: PostMortem) -> None:
    windows = story.windows
    minutes = [index * windows.window_ms / 60_000 for index in range(len(windows.rows))]
    width = windows.window_ms / 60_000
    sent, refused, put_off = ([row[column] / windows.each for row in windows.rows] for column in range(3))
    axes.bar(minutes, sent, width, align="edge", color="#7aa6d8", label="sent")
    axes.bar(minutes, refused, width, align="edge", color="#b00020", label="429s")
    axes.plot([at + width / 2 for at in minutes], put_off, color="#c77700", linewidth=1, label="put off")
    for course in courses(story.rulings):
        for span, amount in course.steps if course.unit == "requests" else ():
            start, end = ((edge - story.span.from_ms) / 60_000 for edge in span)
            axes.hlines(amount * (windows.window_ms / windows.each) / course.window_ms, start, end, color="#1b7f3b")
    axes.set_ylabel(f"per {windows.window_ms / windows.each / _MS:g} s (green: the limits in force)")
    axes.legend(loc="upper right", frameon=False)


def _draw_latency(axes: Any, story: PostMortem) -> None:
    """P99 per task type and window; a dotted line where a ceiling began to hold."""
    for task_type in dict.fromkeys(one.task_type for one in story.moments):
        points = [one for one in story.moments if one.task_type == task_type]
        minutes = [(one.from_ms + story.windows.window_ms / 2 - story.span.from_ms) / 60_000 for one in points]
        axes.plot(
            minutes, [max(1, one.p99_ms) / _MS for one in points], marker=".", label=f" {task_type or 'no task type'}"
        )
    for spell in story.spells:
        if spell.ceiling:
            axes.axvline((spell.from_ms - story.span.from_ms) / 60_000, color="#222", linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylabel("P99, s (dotted: a ceiling begins)")
    # Agents write task types: `$` begins no formula, and `_` after a space hides no label.
    for text in axes.legend(loc="upper right", frameon=False).get_texts():
        text.set_parse_math(False)


def _who(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["agent"] or "unattributed", row["goal"]


def _sent(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return row["sent"], row["refused"], shown_money(row["cost_micro"])


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = "".join(f"<th>{escape(name)}" for name in head)
    body = "\n".join("<tr>" + "".join(_td(str(cell)) for cell in row) for row in rows)
    return f"<table><tr>{cells}\n{body}</table>" if any(head) else f"<table>{body}</table>"


def _td(cell: str) -> str:
    return f"<td{' class=at' if _INSTANT.fullmatch(cell) else ''}>{escape(cell)}"


def _ruling(one: Ruling) -> Sequence[object]:
    most = f"{one.most:,} of {one.allowed:,} at {shown_instant(one.most_at_ms)[11:]}" if one.most else "0"
    limit = f"{one.budget} (paused)" if one.paused else one.budget
    return (
        f"{limit}: {one.limit}",
        one.revision,
        shown_instant(one.span.from_ms),
        most,
        one.sent,
        one.refused,
        one.verdict.value,
        f"{one.author}: {one.reason}",
    )


def _spell(one: Spell) -> Sequence[object]:
    ceiling = f"{one.ceiling:,}" if one.ceiling else "none"
    times = (one.mean_ms, one.p50_ms, one.p99_ms)
    money = shown_money(one.cost_micro)
    return (one.task_type or "none", ceiling, shown_instant(one.from_ms), one.calls, *times, one.longest, money)


def _windows(story: PostMortem, found: Sequence[Course]) -> Iterable[Sequence[object]]:
    """A row per window, with what the limits were at its end: a window in which one began has it, too."""
    for index, counts in enumerate(story.windows.rows):
        from_ms = story.windows.from_ms + index * story.windows.window_ms
        at_ms = min(from_ms + story.windows.window_ms, story.span.to_ms) - 1
        if any(counts):
            yield (shown_instant(from_ms), *counts, *(course.at(at_ms) or "none yet" for course in found))


def _incident(row: Mapping[str, Any]) -> Sequence[object]:
    """What happened; a host, which has no keys, rests as a whole."""
    is_host = row["kind"] == "ejected" and not row["detail"]
    return (
        shown_instant(row["at_ms"]),
        "host rests" if is_host else row["kind"],
        row["reason"],
        _shown_detail(row["detail"]),
    )


def _shown_detail(detail: str) -> str:
    """The parts of an event, which stand as JSON in the ledger; a key is its own name."""
    if not detail.startswith("{"):
        return detail
    return ", ".join(f"{name} {value}" for name, value in json.loads(detail).items())


def _shown_hours(hours: float) -> str:
    return shown_duration(round(hours * 3_600_000))
