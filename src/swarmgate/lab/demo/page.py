"""
The demo's result as one HTML page without a network: the table, the promises, and drawings inside it as SVG.

Without matplotlib the page has its tables and says what is missing.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import Any, NamedTuple

from swarmgate.lab.demo.figures import CLASSES, ArmFigures
from swarmgate.lab.demo.machine import Machine
from swarmgate.lab.demo.plan import PROVIDER, WINDOW_MS, DemoPlan
from swarmgate.lab.demo.table import ROWS, SPANS, in_time, promises, verdict

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .8rem;border-bottom:1px solid #d8dee4;text-align:right}"
    "td:first-child,th:first-child{text-align:left}.yes{color:#1a7f37}.no{color:#cf222e}svg{max-width:100%;height:auto}figure{margin:0}figcaption{max-width:46rem;color:#57606a}"
)
NO_PLOTS = "<p>Drawings need matplotlib: <code>pip install matplotlib</code>.</p>"


def page(plan: DemoPlan, found: Sequence[ArmFigures], sources: Iterable[str]) -> str:
    """The whole page."""
    head = "".join(f"<th>{escape(arm.name)}</th>" for arm in found)
    rows = "".join(
        f"<tr><td>{escape(label)}</td>{''.join(f'<td>{escape(cell(arm))}</td>' for arm in found)}</tr>"
        for label, cell in ROWS
    )
    verdicts = "".join(
        f"<tr><td>{escape(one.text)}</td><td>{escape(one.came_to)}</td>"
        f'<td class="{_word(kept=one.kept)}">{_word(kept=one.kept)}</td></tr>'
        for one in promises(plan, found)
    )
    told = "".join(f"<li>{escape(source)}</li>" for source in sources)
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>swarmgate demo</title><style>{STYLE}</style></head>
<body><h1>{plan.agents:,} agents, with a gate and without</h1>
<p>The same trace in each arm: {plan.keys} keys with {plan.tokens_limit:,} tokens in any {WINDOW_MS // 1_000} s each, and web
hosts with limits of their own. Witnesses at the targets counted every arrival; the gate was told the numbers and no more.</p>
<table><tr><th></th>{head}</tr>{rows}</table><p>{escape(SPANS)}</p><h2>What the gate was to show</h2><table>{verdicts}</table>
<p>{escape(verdict(plan, found) or _machine(found[0].machine))}</p>
{_drawings(plan, found)}
<h2>Traces</h2><ul>{told}</ul></body></html>
"""


def _machine(running: Machine | None) -> str:
    return "" if running is None else f"The machine meanwhile: {running.told()}."


def can_draw() -> bool:
    """Whether what draws is installed."""
    return find_spec("matplotlib") is not None


def _word(*, kept: bool) -> str:
    return "yes" if kept else "no"


def _drawings(plan: DemoPlan, found: Sequence[ArmFigures]) -> str:
    if not can_draw():
        return NO_PLOTS
    import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import

    mpl.use("Agg")
    mpl.rcParams.update({"svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    return "".join(
        f"<figure><h2>{escape(one.title)}</h2>{_svg(one, plan, found)}"
        f"<figcaption>{escape(one.seen)} <b>Good:</b> {escape(one.good)}</figcaption></figure>"
        for one in DRAWINGS
    )


def _svg(one: "Drawing", plan: DemoPlan, found: Sequence[ArmFigures]) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415 - see above

    figure = Figure(figsize=(9, 3.2))
    one.draw(figure.add_subplot(), plan, found)
    out = StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _goodput(axes: Any, plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    for arm in found:
        axes.plot([value / 1e6 for value in arm.series["tpm"]], label=arm.name, linewidth=1.4)
    compiled = plan.tokens_compiled * plan.keys * 60_000 / WINDOW_MS / 1e6
    axes.axhline(compiled, color="black", linestyle="--", linewidth=1, label="what budgets allow")
    axes.set(xlabel="seconds since the first call", ylabel="M tokens/min", ylim=(0, None))
    axes.legend(fontsize=8)


def _refusals(axes: Any, _plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    for arm in found:
        axes.plot(arm.series["refusals"], label=arm.name, linewidth=1.4)
    axes.set(xlabel="seconds since the first call", ylabel="refusals/s", ylim=(0, None))
    axes.legend(fontsize=8)


def _waits(axes: Any, _plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    width = 0.8 / max(1, len(found))
    for number, arm in enumerate(found):
        have = [(at, arm.waits[rank]) for at, rank in enumerate(CLASSES) if rank in arm.waits]
        places = [at + number * width for at, _ in have]
        bottoms = [max(1, waits.p50_ms) for _, waits in have]
        heights = [max(1, waits.p99_ms - waits.p50_ms) for _, waits in have]
        axes.bar(places, heights, width * 0.9, bottom=bottoms, label=arm.name)
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(CLASSES))], CLASSES)
    axes.set(yscale="log", ylabel="wait")
    axes.yaxis.set_major_formatter(lambda ms, _at: in_time(round(ms)))
    axes.legend(fontsize=8)


def _over_limit(axes: Any, _plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    totals: dict[str, int] = {}
    for arm in found:
        for place, count in arm.over_limit.items():
            totals[place] = totals.get(place, 0) + count
    worst = sorted(totals, key=lambda place: -totals[place])[:12]
    left = [0] * len(worst)
    for arm in found:
        counts = [arm.over_limit.get(place, 0) for place in worst]
        axes.barh([place.replace(f"{PROVIDER}/scope-", "key ") for place in worst], counts, left=left, label=arm.name)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    if worst:
        axes.invert_yaxis()
        axes.set(xlabel="arrivals")
        axes.legend(fontsize=8)
    else:
        axes.text(0.5, 0.5, "none", ha="center")


def _shares(axes: Any, _plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    width = 0.8 / max(1, len(found))
    for number, arm in enumerate(found):
        axes.bar([number * width, 1 + number * width], [arm.deferral_share, arm.reuse], width * 0.9, label=arm.name)
    axes.set_xticks([at + 0.4 - width / 2 for at in range(2)], ["deferrals per send", "connections reused"])
    axes.yaxis.set_major_formatter(lambda share, _at: f"{share * 100:.0f} %")
    axes.legend(fontsize=8)


def _bill(axes: Any, _plan: DemoPlan, found: Sequence[ArmFigures]) -> None:
    axes.bar([arm.name for arm in found], [arm.cost_micro / max(1, arm.answered_tokens) for arm in found], 0.5)
    axes.set(ylabel="USD per M tokens")


class Drawing(NamedTuple):
    """One figure: its title, what one sees in it, what a good one looks like, and who draws it."""

    title: str
    seen: str
    good: str
    draw: Callable[[Any, DemoPlan, Sequence[ArmFigures]], None]


DRAWINGS = (
    Drawing(
        "Tokens answered per minute",
        "Each line is an arm, second by second: the tokens of model calls that got their answer. The gate's arm begins calmly.",
        "the gate's line comes to lie on the dashed one, which is what its budgets allow for all keys, and stays there. "
        "Direct agents use the part of each limit that the gate leaves free; what that costs is in the next drawings.",
        _goodput,
    ),
    Drawing(
        "Refusals at the targets, per second",
        "How many requests keys and web hosts refused in each second (429, 403 or 503), as their witnesses saw it.",
        "a line on the ground. A refused request was sent for nothing, and is sent again.",
        _refusals,
    ),
    Drawing(
        "Waits by class, from the median to P99",
        "From the instant at which an agent wants a model call to its arrival at the target. Each bar begins at the median and "
        "ends at P99; every line of the scale is ten times the one below. Calls that never arrived have no wait.",
        "the gate's bar for P0 (hypotheses) ends near the ground. More is wanted than fits, so P2 (cleaning) has to wait. Direct "
        "agents wait little where they are answered at all.",
        _waits,
    ),
    Drawing(
        "Arrivals over a limit",
        "The dozen keys and web hosts with the most requests beyond their limit, counted by their witnesses; one colour an arm.",
        "no bar in the gate's colour: a limit that is kept is never seen here.",
        _over_limit,
    ),
    Drawing(
        "Deferrals per send, and connections reused",
        "Left: how often a call was told when to come back, for each request that was sent. Right: the share of requests that "
        "went over a connection that was open already.",
        "on the right, nearly 100 %. On the left a low bar, but a deferral is no failure: nothing was sent.",
        _shares,
    ),
    Drawing(
        "Bill per million tokens",
        "What the provider bills, in USD, for each million tokens of calls that got their answer.",
        "no bar much higher than the gate's. What is sent and then given up is billed too.",
        _bill,
    ),
)
