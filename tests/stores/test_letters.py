import os

import pytest

from swarmgate.core.errors import BadInput
from swarmgate.stores.letters.letter import Letter, kept_headers, kept_path
from swarmgate.stores.letters.shelf import FOLDER, KEPT_MS, MOST_LETTERS, UNANSWERED, UNREADABLE, Shelf

NOW_MS = 1_800_000_000_000


def letter(identity="req-1", at_ms=NOW_MS, body=b"{}"):
    return Letter(identity, at_ms, "target_error", "up", "m", 4, {"agent": "a"}, "POST", "/v1/x", [("a", "b")], body)


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path)


def age(tmp_path, identity, at_ms):
    os.utime(tmp_path / FOLDER / f"{identity}.json", (at_ms / 1_000, at_ms / 1_000))


def test_a_letter_comes_back_as_it_was_and_is_its_owners_only(shelf, tmp_path):
    shelf.put(letter(body=b"\xff\x00"), 0)
    assert shelf.letter("req-1") == letter(body=b"\xff\x00")
    assert shelf.letters() == [letter(body=b"\xff\x00")]
    assert (tmp_path / FOLDER / "req-1.json").stat().st_mode & 0o077 == 0
    assert (tmp_path / FOLDER).stat().st_mode & 0o077 == 0


def test_one_that_cannot_be_read_is_told_and_may_be_dropped(shelf, tmp_path, monkeypatch):
    shelf.put(letter("good"), 0)
    shelf.put(letter("torn"), 0)
    (tmp_path / FOLDER / "torn.json").write_bytes(b'{"id": "torn", "at_')
    age(tmp_path, "torn", NOW_MS - 1_000)
    torn, good = shelf.letters()
    assert (torn.id, torn.reason, torn.body, good.id) == ("torn", UNREADABLE, None, "good")
    assert torn.without_body.startswith("cannot be read: Input data was truncated")
    with pytest.raises(BadInput, match="torn cannot be read"):
        shelf.letter("torn")

    def refused(_path):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.read_bytes", refused)
        assert [one.without_body for one in shelf.letters()] == ["cannot be read: Permission denied"] * 2
        with pytest.raises(BadInput, match="good cannot be read: Permission denied"):
            shelf.letter("good")
    shelf.drop("torn")
    assert [one.id for one in shelf.letters()] == ["good"]


def test_a_request_that_only_says_that_it_is_one_sent_again_is_kept(shelf):
    shelf.put(letter("first"), 0)
    shelf.put(letter("without", body=None), 0)
    shelf.put(letter("again"), 0, "first")
    shelf.put(letter("other", body=b'{"a": 1}'), 0, "first")
    shelf.put(letter("long", body=None), 0, "without")
    shelf.put(letter("none"), 0, "nothing-there")
    assert {one.id for one in shelf.letters()} == {"first", "without", "other", "long", "none"}


def test_a_replay_is_claimed_once(shelf):
    shelf.put(letter(), 0)
    shelf.claim("req-1", "first")
    with pytest.raises(BadInput, match="sent already"):
        shelf.claim("req-1", "first")
    shelf.claim("req-1", "second")
    shelf.came("req-1", "first", "200")
    assert shelf.letter("req-1").replays == {"first": "200", "second": UNANSWERED}
    with pytest.raises(BadInput, match="sent already"):
        shelf.claim("req-1", "first")


def test_what_came_of_a_replay_stands_beside_the_others_and_brings_no_dropped_letter_back(shelf, tmp_path):
    shelf.put(letter(), 0)
    for name in ("lost", "a", "b"):
        shelf.claim("req-1", name)
    shelf.came("req-1", "b", "200")
    shelf.came("req-1", "a", "429")
    told = {"lost": UNANSWERED, "a": "429", "b": "200"}
    assert shelf.letter("req-1").replays == shelf.letters()[0].replays == told
    shelf.drop("req-1")
    shelf.came("req-1", "lost", "200")
    assert not list((tmp_path / FOLDER).iterdir())


def test_old_ones_and_too_many_go(shelf, tmp_path):
    shelf.put(letter("old"), 0)
    shelf.claim("old", "first")
    age(tmp_path, "old", NOW_MS - KEPT_MS - 1_000)
    shelf.put(letter("young"), 0)
    age(tmp_path, "young", NOW_MS)
    shelf.prune(NOW_MS)
    assert [one.id for one in shelf.letters()] == ["young"]
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["young.json"]
    for number in range(MOST_LETTERS):
        (tmp_path / FOLDER / f"more-{number}.json").write_text("{}")
        age(tmp_path, f"more-{number}", NOW_MS + 1 + number)
    shelf.prune(NOW_MS)
    assert not (tmp_path / FOLDER / "young.json").exists()


@pytest.mark.parametrize("identity", ["../token", "", "a/b", "x" * 99, "none", "a\x00b"])
def test_an_id_never_leaves_the_folder(shelf, identity):
    for act in (shelf.letter, shelf.drop, lambda one: shelf.claim(one, "first")):
        with pytest.raises(BadInput):
            act(identity)
    shelf.put(letter(), 0)
    with pytest.raises(BadInput, match="replay-id"):
        shelf.claim("req-1", "../x")


def test_what_names_an_account_is_no_part_of_it():
    fields = [
        (b"authorization", b"Bearer sk"),
        (b"x-swarmgate-agent", b"a"),
        (b"cookie", b"c"),
        (b"content-length", b"9"),
    ]
    assert kept_headers(fields) == [("x-swarmgate-agent", "a")]


def test_p14_letters_have_so_many_bytes_together(shelf, tmp_path, monkeypatch):
    for number in range(6):
        shelf.put(letter(f"req-{number}", body=b"x" * 1_000), 0)
        age(tmp_path, f"req-{number}", NOW_MS + number * 1_000)
    monkeypatch.setattr("swarmgate.stores.letters.shelf.MOST_BYTES", 5_000)
    shelf.prune(NOW_MS)
    assert {one.id for one in shelf.letters()} == {"req-3", "req-4", "req-5"}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/to/https/ann:pass@site.test/x?q=1", "/to/https/site.test/x?q=1"),
        ("/as/agent=a1/to/+2xd/https/ann@site.test/x", "/as/agent=a1/to/+2xd/https/site.test/x"),
        ("http://ann:pass@site.test/x", "http://site.test/x"),
        ("/as/agent=a1,key=sgk_1/v1/x", "/as/agent=a1/v1/x"),
        (
            "/to/https/s.test/x?api_key=1&page=2&%6bey=3&X-Amz-Signature=4&keyword=cat",
            "/to/https/s.test/x?page=2&keyword=cat",
        ),
        ("/to/https/s.test/x?access_token=1", "/to/https/s.test/x"),
        ("/to/https/s.test/a@b?mail=a@b", "/to/https/s.test/a@b?mail=a@b"),
    ],
)
def test_sc_03_no_secret_of_a_url_is_kept(path, kept):
    assert kept_path(path.encode()) == kept


def test_sc_03_headers_are_kept_by_their_names():
    secret = (
        "authorization",
        "cookie",
        "private-token",
        "x-auth-token",
        "x-api-key",
        "x-goog-api-key",
        "x-vault-token",
    )
    secret += ("x-amz-security-token", "x-csrf-token", "x-swarmgate-key", "x-swarmgate-ticket", "api_key", "x-password")
    kept = ("idempotency-key", "content-type", "x-swarmgate-agent", "x-swarmgate-step", "openai-beta", "accept", "keep")
    fields = [(name.encode(), b"v") for name in (*secret, *kept)]
    assert [name for name, _ in kept_headers(fields)] == list(kept)
