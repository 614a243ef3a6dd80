"""The official SDKs before a gate, a ladder of two targets, and a request that every test may ask."""

import anthropic
import openai

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
TWO = """
[targets.first]
base_url = "http://127.0.0.1:{port}/first"
keys = {{ one = "env:KEY" }}

[targets.second]
base_url = "http://127.0.0.1:{port}/second"
keys = {{ two = "env:KEY" }}

[routes]
m = ["first/large", "second/small"]
"""


def claude(port, max_retries=0):
    return anthropic.AsyncAnthropic(base_url=f"http://127.0.0.1:{port}", api_key="agent", max_retries=max_retries)


def gpt(port, max_retries=0):
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="agent", max_retries=max_retries)
