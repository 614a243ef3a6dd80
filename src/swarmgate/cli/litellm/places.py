"""
What the word before a model's name means in LiteLLM (`groq/llama-3`): where that is called, and with which key.

Source: https://docs.litellm.ai/docs/providers, a page for each word. Named are places that speak OpenAI's or Anthropic's
dialect, since the gate passes requests on as they are, and keys that are sent as they are.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """
    A provider by its word: the base URL and the variable of the key that hold where a deployment names none.

    `below` ends every base URL there, whether or not a deployment's `api_base` says so; `provider` is the dialect where its
    host does not tell.
    """

    url: str
    key: str
    below: str = ""
    provider: str = ""


PLACES = {
    "openai": Place("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "text-completion-openai": Place("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Place("https://api.anthropic.com", "ANTHROPIC_API_KEY", "/v1", "anthropic"),
    "azure": Place("", "AZURE_API_KEY", "/openai/v1", "azure"),
    "azure_ai": Place("", "AZURE_AI_API_KEY", "/openai/v1", "azure"),
    "gemini": Place("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", provider="gemini"),
    "mistral": Place("https://api.mistral.ai/v1", "MISTRAL_API_KEY", provider="mistral"),
    "groq": Place("https://api.groq.com/openai/v1", "GROQ_API_KEY", provider="groq"),
    "deepseek": Place("https://api.deepseek.com", "DEEPSEEK_API_KEY", "/v1", "deepseek"),
    "moonshot": Place("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", provider="moonshot"),
    "dashscope": Place("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", provider="qwen"),
    "openrouter": Place("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", provider="openrouter"),
    "xai": Place("https://api.x.ai/v1", "XAI_API_KEY"),
    "together_ai": Place("https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
    "fireworks_ai": Place("https://api.fireworks.ai/inference/v1", "FIREWORKS_AI_API_KEY"),
    "deepinfra": Place("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "cerebras": Place("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "nvidia_nim": Place("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    "hosted_vllm": Place("", "HOSTED_VLLM_API_KEY"),
    "openai_like": Place("", "OPENAI_LIKE_API_KEY"),
    "custom_openai": Place("", "OPENAI_LIKE_API_KEY"),
    "litellm_proxy": Place("", "LITELLM_PROXY_API_KEY"),
    "lm_studio": Place("", "LM_STUDIO_API_KEY"),
    "ollama": Place("http://127.0.0.1:11434", "OLLAMA_API_KEY", "/v1"),
    "ollama_chat": Place("http://127.0.0.1:11434", "OLLAMA_API_KEY", "/v1"),
}

_AWS = "its requests are signed with AWS keys, and the gate sends keys as they are"
_GOOGLE = "it wants Google's short-lived tokens, and the gate sends keys as they are; gemini/ takes a key"
FOREIGN = {
    "bedrock": _AWS,
    "sagemaker": _AWS,
    "sagemaker_chat": _AWS,
    "vertex_ai": _GOOGLE,
    "vertex_ai_beta": _GOOGLE,
}

_BARE = (  # whose names they are where no word stands before them
    (("gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-", "ft:gpt-", "codex-"), "openai"),
    (("claude-",), "anthropic"),
)


def split(model: str) -> tuple[str, str]:
    """The word and the name of a model as LiteLLM writes it; the word is empty if nobody can tell whose it is."""
    word, slash, name = model.partition("/")
    if slash and (word in PLACES or word in FOREIGN):
        return word, name
    for beginnings, owner in _BARE:
        if model.startswith(beginnings):
            return owner, model
    return "", model


def base_url(place: Place, api_base: str) -> str:
    """Where its models are called; empty if nobody says."""
    url = (api_base or place.url).rstrip("/")
    return url if not url or url.endswith(place.below) else url + place.below
