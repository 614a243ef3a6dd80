"""TI-06: two tenants behind one account never meet in a provider's cache or count, whatever names they choose."""

import asyncio
import json

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import stage

from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.apart import apart
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.peek import peek

teams = st.text("ab ", min_size=1, max_size=4)
names = st.text(max_size=6)


def keeper(pepper=b"p"):
    made = Keeper(lambda: 0, required=False)
    made.replace(pepper, {})
    return made


@given(teams, names, teams, names)
def test_ti_06_a_name_is_one_tenants_own(team, name, other_team, other_name):
    same = (team, name) == (other_team, other_name)
    assert (keeper().alias(team, name) == keeper().alias(other_team, other_name)) == same
    assert keeper().alias(team, name) != keeper(b"q").alias(team, name)  # nobody without the pepper finds it by trying
    assert len(keeper().alias(team, name)) == 32


@given(
    st.dictionaries(
        st.sampled_from(["user", "prompt_cache_key", "safety_identifier", "metadata", "temperature", "messages"]),
        st.one_of(
            st.text(max_size=4),
            st.integers(),
            st.none(),
            st.dictionaries(st.sampled_from(["user_id", "b"]), st.text(max_size=3)),
        ),
    )
)
def test_whatever_a_body_has_only_names_become_others(fields):
    body = json.dumps({"model": "m", **fields}).encode()
    after = apart(peek(body), lambda name: f"<{name}>")
    expected = {"model": "m"} | fields
    for name in ("user", "prompt_cache_key", "safety_identifier"):
        if isinstance(fields.get(name), str):
            expected[name] = f"<{fields[name]}>"
    if isinstance(fields.get("metadata"), dict) and "user_id" in fields["metadata"]:
        expected["metadata"] = fields["metadata"] | {"user_id": f"<{fields['metadata']['user_id']}>"}
    assert json.loads(after.body) == expected
    assert msgspec.json.decode(after.with_model("other")) == expected | {"model": "other"}
    assert (after.model, after.prompt_tokens, after.max_tokens) == (
        "m",
        peek(body).prompt_tokens,
        peek(body).max_tokens,
    )


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_ti_06_what_the_provider_sees_of_two_teams(path, stream):
    async def play():
        async with stage() as running, httpx.AsyncClient(timeout=20) as client:
            scopes = {
                "sgk_red": Scope("1", "red"),
                "sgk_red2": Scope("2", "red"),
                "sgk_blue": Scope("3", "blue"),
                "sgk_none": Scope("4"),
            }
            running.gate.ask_for_keys(required=False).replace(
                b"p", {key_hash(key, b"p"): one for key, one in scopes.items()}
            )
            said = {"model": "m", "stream": stream, "messages": [], "prompt_cache_key": "docs", "user": "ann"}
            said["metadata"] = {"user_id": "ann"}
            for key in (*scopes, ""):
                headers = {"authorization": f"Bearer {key}"} if key else {}
                await client.post(f"{running.url}/{path}", json=said, headers=headers)
            return [hit.said for hit in running.stand_in.hits]

    red, red2, blue, none, keyless = asyncio.run(play())
    for name in ("prompt_cache_key", "user", "metadata"):
        assert red[name] == red2[name]
        assert len({json.dumps(one[name]) for one in (red, blue, none)}) == 3
        assert (
            none[name]
            == keyless[name]
            == {"prompt_cache_key": "docs", "user": "ann", "metadata": {"user_id": "ann"}}[name]
        )
        assert "ann" not in json.dumps(blue[name])
        assert "docs" not in json.dumps(blue[name])
