"""Without a file the environment says which providers there are."""

import pytest

from swarmgate.config import BaseUrl, Deployment, from_environment
from swarmgate.config.problems import FileError

CANARY = "sk-canary-12"


def test_one_key_serves_every_model():
    config = from_environment({"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert config.targets["openai"].base_url == BaseUrl("http", "127.0.0.1", 9, "/v1")
    assert config.routes == {"*": (Deployment("openai", "*"),)}
    config = from_environment({"ANTHROPIC_API_KEY": CANARY})
    assert config.targets["anthropic"].base_url == BaseUrl("https", "api.anthropic.com", 443, "/v1")
    assert config.targets["anthropic"].auth == "x-api-key"
    assert list(config.routes) == ["*"]


def test_with_both_keys_the_name_of_a_model_tells_whose_it_is():
    config = from_environment({"OPENAI_API_KEY": CANARY, "ANTHROPIC_API_KEY": CANARY, "OPENAI_BASE_URL": ""})
    assert config.routes == {"*": (Deployment("openai", "*"),), "claude-*": (Deployment("anthropic", "*"),)}
    assert CANARY not in repr(config)


@pytest.mark.parametrize("url", ["https://h", "https://h/", "https://h/v1", "https://h/v1/"])
def test_the_base_url_of_anthropic_is_that_of_its_sdk(url):
    config = from_environment({"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": url})
    assert config.targets["anthropic"].base_url.path == "/v1"
    assert config.targets["anthropic"].provider == "anthropic"  # wherever it stands: that is what its SDK speaks


def test_what_is_missing_or_wrong():
    with pytest.raises(FileError, match="OPENAI_API_KEY and ANTHROPIC_API_KEY: are not set"):
        from_environment({"OPENAI_API_KEY": ""})
    with pytest.raises(FileError, match="OPENAI_BASE_URL: is no base URL"):
        from_environment({"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": "nowhere"})
    with pytest.raises(FileError) as caught:
        from_environment({"OPENAI_API_KEY": f"{CANARY} and more"})
    assert CANARY not in str(caught.value)
