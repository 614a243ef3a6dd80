"""AZ-06: whatever agents, targets and operators write, the page of a post-mortem has no tag, link or handler of theirs."""

from html.parser import HTMLParser

import pytest
from story import START_MS, Story, import_all

from swarmgate.control.page import page
from swarmgate.control.post_mortem import post_mortem
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.reading import Span

PAYLOADS = {
    "script": "<script>marker()</script>",
    "handler": "<img src=x onerror=marker()>",
    "attribute": '" autofocus onfocus="marker()',
    "closing": "</td></table></style></title><svg onload=marker()>",
    "entity": "&lt;script&gt;marker()&#60;/script&#62;",
    "link": "javascript:marker()",
    "comment": "--><iframe srcdoc='<script>marker()</script>'>",
    "letters": "\x00\x1b[31m\u202e</script >",
}
PLAIN = frozenset(
    ("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "code", "table", "tr", "th", "td", "svg")
)


class Seen(HTMLParser):
    """The tags and attributes that a browser would see outside of drawings."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.texts = []
        self._drawn = 0

    def handle_starttag(self, tag, attrs):
        self._drawn += tag == "svg"
        if tag not in PLAIN and not self._drawn:
            self.found.append(tag)
        self.found += [
            name for name, value in attrs if name.startswith("on") or "marker" in str(value) or name == "srcdoc"
        ]

    def handle_endtag(self, tag):
        self._drawn -= tag == "svg"

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", PAYLOADS)
def test_az_06_nothing_that_anybody_wrote_is_markup(tmp_path, name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)  # tables; drawings have letters as paths
    text = PAYLOADS[name]
    story = Story(tmp_path)
    story.boot()
    story.revision(author=text, reason=text)
    said = {"agent": text, "goal": text, "step": text, "task": text, "task_type": text, "model": text}
    story.answered("req-1", **said, team=text)
    story.ends(story.leaves("req-2", **said), kind="rate", end="failed", status=429, reason=text, end_reason=text)
    story.deferred("req-3", budget=text, agent=text, goal=text, step=text)
    import_all(story.write().folder).close()
    opened = Ledger.to_read(tmp_path)
    drawn = page(post_mortem(opened, "up", Span(START_MS - 1_000, story.ms + 1)))
    opened.close()
    seen = Seen()
    seen.feed(drawn)
    assert seen.found == []
    assert "default-src &#x27;none&#x27;" in drawn or "default-src 'none'" in drawn
    if name != "letters":
        assert any(text in one for one in seen.texts)  # it is there, as text
