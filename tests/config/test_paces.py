"""What hosts begin at and grow to is a limit like any other: none of nothing, of no time, or beyond what the gate can keep."""

import pytest

from swarmgate.config import parse
from swarmgate.config.problems import FileError
from swarmgate.wiring import plan


@pytest.mark.parametrize(
    ("field", "pace", "said"),
    [
        ("unknown", "0 per 1s", "0 requests per 1s: must be at least 1; to stop a target, pause it"),
        ("ceiling", "0 per 1s", "0 requests per 1s: must be at least 1; to stop a target, pause it"),
        ("unknown", "1 per 0s", "a limit on use needs a window of at least 1 ms"),
        ("ceiling", "1 per 0ms", "a limit on use needs a window of at least 1 ms"),
        ("unknown", "1 per 7d", "is slower than 1 per 12h"),
        ("ceiling", "1 per 1h", "is slower than 1 per 1m"),
        ("unknown", "5_000_000 per 1s", "is faster than 1_000_000 per 1s"),
        ("ceiling", "9999999999999999 per 1s", "must lie between 0 and 2^51 - 1"),
    ],
)
def test_a_pace_that_cannot_be_kept_is_told(field, pace, said):
    with pytest.raises(FileError) as caught:
        parse(f'[egress]\n{field} = "{pace}"\n', {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (2, f"egress.{field}")
    assert said in problem.reason


def test_two_paces_that_cannot_be_kept_are_two_mistakes():
    with pytest.raises(FileError) as caught:
        parse('[egress]\nunknown = "0 per 0s"\nceiling = "0 per 0s"\n', {})
    assert [problem.field for problem in caught.value.problems] == ["egress.unknown", "egress.ceiling"]


@pytest.mark.parametrize(
    ("unknown", "ceiling"),
    [("1 per 12h", "1 per 1m"), ("1_000_000 per 1s", "1_000_000 per 1s"), ("1 per 1s", "1 per 1s")],
)
def test_the_slowest_and_the_fastest_are_kept(unknown, ceiling):
    assert plan(parse(f'[egress]\nunknown = "{unknown}"\nceiling = "{ceiling}"\n', {}))
