"""AZ-06: whatever agents, targets and operators write, the page of a post-mortem has no tag, link or handler of theirs."""

import re
import shutil
import subprocess
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
    "formula": r"$\frac{$<script>marker()</script>",
}
PLAIN = frozenset(
    ("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "code", "table", "tr", "th", "td", "svg")
)
POLICY = re.compile("<meta http-equiv=Content-Security-Policy[^>]*>")
MARKER = "<script>function marker() { document.documentElement.dataset.ran = 'yes' }</script>"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


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


def drawn(folder, *texts):
    """The page of a story in which everybody calls everything by each of these texts."""
    story = Story(folder)
    story.boot()
    for number, text in enumerate(texts):
        story.revision(author=text, reason=text, revision=number + 1)
        said = {"agent": text, "goal": text, "step": text, "task": text, "task_type": text, "model": text}
        story.answered(f"req-{number}-1", **said, team=text)
        ends = {"kind": "rate", "end": "failed", "status": 429, "reason": text, "end_reason": text}
        story.ends(story.leaves(f"req-{number}-2", **said), **ends)
        story.deferred(f"req-{number}-3", budget=text, agent=text, goal=text, step=text)
    import_all(story.write().folder).close()
    opened = Ledger.to_read(folder)
    try:
        return page(post_mortem(opened, "up", Span(START_MS - 1_000, story.ms + 1)))
    finally:
        opened.close()


@pytest.mark.parametrize("name", PAYLOADS)
def test_az_06_nothing_that_anybody_wrote_is_markup(tmp_path, name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)  # tables; drawings have letters as paths
    text = PAYLOADS[name]
    shown = drawn(tmp_path, text)
    seen = Seen()
    seen.feed(shown)
    assert seen.found == []
    assert "default-src &#x27;none&#x27;" in shown or "default-src 'none'" in shown
    if name != "letters":
        assert any(text in one for one in seen.texts)  # it is there, as text


@pytest.mark.parametrize("task_type", ["$x$", r"$\frac{$", "a$", "_hidden", "<script>", "-->", "]]>"])
def test_az_06_a_drawing_is_made_whatever_agents_call_their_tasks(tmp_path, task_type):
    pytest.importorskip("matplotlib")
    shown = drawn(tmp_path, task_type)
    assert "<svg" in shown
    assert "<script" not in shown
    assert len(re.findall("<!--", shown)) == len(re.findall("-->", shown))


def ran(folder, text):
    """Whether a script has run in a browser that has loaded a page of this text."""
    file = folder / "page.html"
    file.write_text(text, errors="replace")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}", "--dump-dom")
    told = subprocess.run([BROWSER, *options, file.as_uri()], check=True, capture_output=True, text=True, timeout=60)
    assert "</html>" in told.stdout
    return 'data-ran="yes"' in told.stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path")
def test_az_06_no_script_of_theirs_runs_in_a_browser(tmp_path):
    (tmp_path / "ledger").mkdir()
    shown = drawn(tmp_path / "ledger", *filter(str.isprintable, PAYLOADS.values()))
    without_policy = POLICY.sub(MARKER, shown)
    assert without_policy.count(MARKER) == 1
    first = without_policy + PAYLOADS["script"]  # a page that lets somebody's text through is found out
    assert [ran(tmp_path, one) for one in (shown, without_policy, first)] == [False, False, True]
    assert not ran(tmp_path, shown + MARKER + PAYLOADS["script"])  # and by itself the policy lets none run
