"""
Deployments as a LiteLLM proxy's YAML lists them (`model_list`), and the names of what could not be taken over.

Source: https://docs.litellm.ai/docs/proxy/configs. The reader is the one that LiteLLM uses, so that both read the same. A
key that stands in the file is given the name of a variable, and repeated nowhere.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from swarmgate.cli.litellm.places import FOREIGN, PLACES, base_url, split
from swarmgate.config import ANY_MODEL
from swarmgate.config.addresses import read_base_url
from swarmgate.core.errors import BadInput

_FROM_ENVIRONMENT = "os.environ/"
_LIMITS = (("rpm", "per 60s"), ("tpm", "tokens per 60s"), ("max_parallel_requests", "concurrent"))
_COSTS = {  # a token in LiteLLM, a million here
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached",
    "cache_creation_input_token_cost": "cache_written",
}
_TAKEN = {"model", "api_key", "api_base", "custom_llm_provider", "order", *dict(_LIMITS), *_COSTS}
_PARAMS = {
    **dict.fromkeys(
        ("temperature", "max_tokens", "max_completion_tokens", "top_p", "seed", "stop", "user", "reasoning_effort"),
        "callers say it in their requests",
    ),
    **dict.fromkeys(
        ("timeout", "stream_timeout"),
        "callers say how long they wait (x-swarmgate-timeout); a slow stream steps down a rung",
    ),
    "api_version": "Azure's v1 paths need none",
    "weight": "keys share the load by what is left of their quotas; a ladder is used from its top",
    "tags": "a caller's key may name the models that it may use: swarmgate keys create --models",
}
_SAYS_NOTHING = {"id", "mode", "base_model", "description", "max_tokens", "max_input_tokens", "max_output_tokens"}
_READ_MODES = {"", "chat", "completion", "embedding", "responses"}
_LONGEST = 120
LARGEST_WINDOW = 100_000_000


class LeftOut(NamedTuple):
    """Something of the file that this gate will not do: its name there, and why or what does it instead."""

    field: str
    reason: str


class Deployment(NamedTuple):
    """
    One entry of `model_list`: the name that callers use, the place and its key's variable, the model's name there.

    `limits` hold for this model with this key; `price` are dollars for a million tokens, by our names; `window` is the
    longest call in tokens, 0 = not said.
    """

    alias: str
    word: str
    url: str
    provider: str
    variable: str
    model: str
    limits: tuple[str, ...]
    order: int
    price: Mapping[str, Decimal]
    window: int


class Reader:
    """Reads entries one after another; `left_out` grows by what is not taken over, `written` by keys that stood there."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.left_out: list[LeftOut] = []
        self.written: dict[str, str] = {}  # variables by the key that stood in the file

    def omit(self, field: str, reason: str) -> None:
        """Note what is not taken over, once; the file chose the name, so it may be long, or no text to print."""
        shown = "".join(letter if letter.isprintable() else "?" for letter in field[:_LONGEST])
        if (one := LeftOut(shown, reason)) not in self.left_out:
            self.left_out.append(one)

    def deployment(self, number: int, entry: object) -> Deployment | None:
        """What an entry describes; None if it cannot be served, which is then told."""
        where = f"model_list[{number}]"
        try:
            return self._deployment(where, _table(entry))
        except BadInput as bad:
            self.omit(f"{where}.{bad.field}" if bad.field else where, bad.reason)
            return None

    def _deployment(self, where: str, entry: Mapping[str, Any]) -> Deployment:
        params, info = _table(entry.get("litellm_params")), _table(entry.get("model_info"))
        alias, model = _name(entry.get("model_name"), "model_name"), _name(params.get("model"), "litellm_params.model")
        own = params.get("custom_llm_provider")
        word, name = split(f"{own}/{model}" if isinstance(own, str) and f"{own}/" not in model else model)
        if word not in PLACES:
            raise BadInput("litellm_params.model", FOREIGN.get(word) or f"nobody here knows whose model {model!r} is")
        _fits(alias, name)
        url = self._url(word, params.get("api_base"))
        for field in sorted(params.keys() - _TAKEN):
            self.omit(f"model_list.litellm_params.{field}", _PARAMS.get(field, "has no counterpart"))
        for field in sorted(info.keys() - _SAYS_NOTHING - _TAKEN):
            if not field.startswith("supports_"):
                self.omit(f"model_list.model_info.{field}", "has no counterpart")
        mode = info.get("mode") or ""
        if mode not in _READ_MODES:
            self.omit(f"{where}.model_info.mode", f"{mode!r} is passed on unread, to the first target of its dialect")
        merged = {**entry, **info, **params}
        return Deployment(
            alias,
            word,
            url,
            PLACES[word].provider,
            self._variable(where, word, params.get("api_key")),
            ANY_MODEL if ANY_MODEL in name else name,
            tuple(self._limits(where, merged)),
            _whole(params.get("order")) or 0,
            self._price(where, merged),
            self._window(where, info.get("max_input_tokens")),
        )

    def _url(self, word: str, api_base: object) -> str:
        if isinstance(api_base, str) and api_base.startswith(_FROM_ENVIRONMENT):
            variable = api_base.removeprefix(_FROM_ENVIRONMENT)
            api_base = self._environment.get(variable)
            if not api_base:
                raise BadInput(
                    "litellm_params.api_base", f"the environment has no {_shown(variable)}; set it and run this again"
                )
        url = base_url(PLACES[word], api_base if isinstance(api_base, str) else "")
        if not url:
            raise BadInput("litellm_params.api_base", f"is missing: nobody knows where {word}/ is called")
        try:
            read_base_url(url)
        except BadInput as bad:
            raise BadInput("litellm_params.api_base", bad.reason) from None
        return url

    def _variable(self, where: str, word: str, key: object) -> str:
        if not isinstance(key, str) or not key:
            return PLACES[word].key
        variable = key.removeprefix(_FROM_ENVIRONMENT)
        if variable != key and variable.isidentifier() and variable.isascii():
            return variable
        if key not in self.written:
            self.written[key] = f"{PLACES[word].key}_{len(self.written) + 1}"
        variable = self.written[key]
        self.omit(
            f"{where}.litellm_params.api_key", f"a key does not stand in our file; the environment gives {variable}"
        )
        return variable

    def _limits(self, where: str, entry: Mapping[str, Any]) -> list[str]:
        told = []
        for field, unit in _LIMITS:
            if (amount := _whole(entry.get(field))) is not None:
                told.append(f"{amount} {unit}")
            elif entry.get(field) is not None:
                self.omit(f"{where}.{field}", "is no whole number above 0")
        return told

    def _window(self, where: str, told: object) -> int:
        window = _whole(told) or 0
        if window > LARGEST_WINDOW or (told is not None and not window):
            self.omit(f"{where}.model_info.max_input_tokens", "is no number of tokens")
            return 0
        return window

    def _price(self, where: str, entry: Mapping[str, Any]) -> dict[str, Decimal]:
        price = {ours: cost for field, ours in _COSTS.items() if (cost := _million(entry.get(field))) is not None}
        if price and not {"input", "output"} <= price.keys():
            self.omit(f"{where}: prices", "a price needs input and output; the public list holds instead")
            return {}
        return price


def _table(value: object) -> Mapping[str, Any]:
    return {str(key): one for key, one in value.items()} if isinstance(value, dict) else {}


def _name(value: object, field: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise BadInput(field, "is no name")
    return value


def _shown(variable: str) -> str:
    return variable if variable.isidentifier() else "variable of that name"  # else it may be the key itself


def _fits(alias: str, model: str) -> None:
    """A star stands for the same letters there; here it stands at the end, and the whole name is sent as it was written."""
    if "*" in alias + model and (alias != model or "*" in alias[:-1]):
        reason = f"callers' names are sent as they write them: {alias!r} cannot become {model!r}; name its models"
        raise BadInput("model_name", reason)


def _whole(value: object) -> int | None:
    """A whole number above 0, also one that is quoted."""
    if isinstance(value, str) and len(value) < 100 and value.replace("_", "").isdecimal():
        value = int(value.replace("_", ""))
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**15 else None


def _million(value: object) -> Decimal | None:
    """Dollars for a million tokens; None = no price."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = Decimal(str(value)) * 1_000_000
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and 0 <= cost <= 1_000_000 else None
