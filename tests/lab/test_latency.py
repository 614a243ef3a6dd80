import csv
from pathlib import Path as File
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.latency import Path, law, laws
from swarmgate.lab.quantiles import table

RECORDED = File(__file__).parents[3] / "shared" / "data" / "latency" / "llm_calls.csv"


@given(st.sampled_from(laws()), st.integers(0, 2**32), st.integers(0, 100_000))
def test_the_first_byte_comes_before_the_last_and_a_seed_repeats(name, seed, output_tokens):
    first_ms, total_ms = law(name).sample(Random(seed), output_tokens)
    assert 0 <= first_ms <= total_ms
    assert (first_ms, total_ms) == law(name).sample(Random(seed), output_tokens)


@given(st.sampled_from([name for name in laws() if name != "web"]), st.integers(0, 2**32), st.integers(0, 5000))
def test_more_output_never_comes_sooner(name, seed, output_tokens):
    shorter = law(name).sample(Random(seed), output_tokens)
    longer = law(name).sample(Random(seed), output_tokens + 1000)
    assert longer[1] >= shorter[1]


# data.md, section 0, 8: server time to first byte of 554 recorded streams
@pytest.mark.parametrize(("share", "ms"), [(0.5, 240), (0.9, 700), (0.99, 1600)])
def test_web_takes_the_time_to_first_byte_of_recorded_streams(share, ms):
    rng = Random(3)
    drawn = sorted(law("web").sample(rng, 0)[1] for _ in range(20_000))
    assert drawn[int(share * 20_000)] == pytest.approx(ms, rel=0.15)


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded calls are not beside this checkout")
@pytest.mark.parametrize("name", [name for name in laws() if name != "web"])
def test_the_recorded_outputs_take_the_recorded_times(name):
    with RECORDED.open(newline="", encoding="utf-8") as file:
        calls = [row for row in csv.DictReader(file) if row["model_requested"] == name and row["status"] == "200"]
    timed = [row for row in calls if row["stream"] == "0" and (row["processing_ms"] or row["upstream_ms"])]
    outputs = [int(row["completion_tokens"]) for row in timed if row["completion_tokens"]]
    rng = Random(5)
    drawn = sorted(law(name).sample(rng, tokens)[1] for tokens in outputs for _ in range(40))
    p50, p90, _ = table("latency_fit")["models"][name]["p50_p90_p99_ms"]
    assert drawn[len(drawn) // 2] == pytest.approx(p50, rel=0.15)
    # the spread is taken as the same for short and long answers; where it is not, the tail is off, at most by two
    assert p90 / 2 <= drawn[len(drawn) * 9 // 10] <= p90 * 2


def test_an_unknown_law_names_those_there_are():
    with pytest.raises(LabError, match="gpt-4o-mini"):
        law("gpt-17")


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 2**32))
def test_a_path_takes_its_way_and_at_most_its_jitter(one_way_ms, jitter_ms, seed):
    assert one_way_ms <= Path(one_way_ms, jitter_ms).sample(Random(seed)) <= one_way_ms + jitter_ms


def test_jitter_reaches_both_ends():
    rng = Random(1)
    assert {Path(10, 2).sample(rng) for _ in range(100)} == {10, 11, 12}
