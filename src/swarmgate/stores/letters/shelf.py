"""
Where dead letters stand: one file each, for their owner only, in the gate's state folder; bounded in number and age.

A replay is claimed before anything is sent: a file of its own, made exclusively, so that two people or a crash cannot send
the same replay twice (design: issue of dead letters; P7). What came of it stands in that file; it stays empty where nobody knows.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import near
from swarmgate.stores.letters.letter import Letter, is_id

FOLDER: Final = "dead"
UNREADABLE: Final = "unreadable"  # in place of the reason of a letter whose file is damaged, or another's
UNANSWERED: Final = "no answer"  # of a replay that was sent, or still runs
KEPT_MS: Final = 7 * 86_400_000
MOST_LETTERS: Final = 1_000
MOST_BYTES: Final = 256 * 1024 * 1024  # of all letters together: the disk is the journal's, too
_decode = msgspec.json.Decoder(Letter).decode
_encode = msgspec.json.Encoder().encode


class Shelf:
    """The dead letters of one state folder."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    def put(self, letter: Letter, now_ms: int, replay_of: str = "") -> None:
        """
        Keep a letter; the oldest go where there are too many. Errors: OSError.

        A letter that was sent again and given up again is the one that stands here (`replay_of`): it is not kept twice.
        """
        if is_id(replay_of) and self._has(replay_of, letter):
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(letter)
        self.prune(now_ms)

    def _has(self, identity: str, letter: Letter) -> bool:
        """Whether the letter of this id asks for the same: any caller may say that its request is one sent again."""
        try:
            found = _decode(self._path(identity).read_bytes())
        except (OSError, msgspec.DecodeError):
            return False
        return found.body is not None and (found.method, found.path, found.body) == (
            letter.method,
            letter.path,
            letter.body,
        )

    def _write(self, letter: Letter) -> None:
        path = self._path(letter.id)
        new = path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encode(letter))
        new.replace(path)

    def prune(self, now_ms: int) -> None:
        """Drop what is too old or too much."""
        found = sorted(((path.stat(), path) for path in self._files()), key=lambda one: -one[0].st_mtime)
        held = 0
        for place, (status, path) in enumerate(found):
            held += status.st_size
            if place >= MOST_LETTERS or held > MOST_BYTES or status.st_mtime * 1_000 < now_ms - KEPT_MS:
                self.drop(path.stem)

    def letters(self) -> list[Letter]:
        """Every letter, oldest first; one that cannot be read stands there by its name, with `UNREADABLE` and why."""
        found = []
        replays = self._replays("*")
        for path in self._files():
            try:
                letter = _decode(path.read_bytes())
            except FileNotFoundError:  # it was dropped meanwhile
                continue
            except (OSError, msgspec.DecodeError) as error:
                letter = _unreadable(path, error)
            found.append(_with(letter, replays))
        return sorted(found, key=lambda letter: letter.at_ms)

    def letter(self, identity: str) -> Letter:
        """One letter. Errors: `BadInput` if there is none."""
        try:
            if is_id(identity):
                return _with(_decode(self._path(identity).read_bytes()), self._replays(identity))
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            raise BadInput("id", f"{identity} {_why_not(error)}") from None
        raise self._none(identity)

    def _none(self, identity: str) -> BadInput:
        like = near(identity, (path.stem for path in self._files()))
        return BadInput("id", f"{identity[:80]!r} is no dead letter here{like}; `swarmgate dead list` has them")

    def claim(self, identity: str, replay: str) -> None:
        """Have the right to send this replay, once and for all. Errors: `BadInput` if it was claimed before."""
        if not is_id(replay):
            raise BadInput("replay-id", "must be 1 to 80 letters, digits, - and _")
        self.letter(identity)
        try:
            descriptor = os.open(
                self._claim(identity, replay), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            came = self._replays(identity).get(identity, {}).get(replay, UNANSWERED)
            raise BadInput(
                "replay-id", f"{replay} was sent already ({came}); give another one to send it again"
            ) from None
        os.close(descriptor)

    def came(self, identity: str, replay: str, outcome: str) -> None:
        """Note what came of a claimed replay; of a letter that was dropped meanwhile nothing is kept. Errors: OSError."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._claim(identity, replay), os.O_WRONLY | os.O_CLOEXEC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(outcome.encode())

    def drop(self, identity: str) -> None:
        """Forget a letter and its replays. Errors: `BadInput` if there is none."""
        if not is_id(identity) or not self._path(identity).exists():
            raise self._none(identity)
        for claim in self._folder.glob(f"{identity}.*.replay"):
            claim.unlink(missing_ok=True)
        self._path(identity).unlink(missing_ok=True)

    def _replays(self, identity: str) -> dict[str, dict[str, str]]:
        """What came of the replays of a letter, or of all (`*`): by letter, by replay."""
        found: dict[str, dict[str, str]] = {}
        for path in sorted(self._folder.glob(f"{identity}.*.replay")):
            letter, replay, _ = path.name.split(".")
            try:
                came = path.read_text("utf-8", "replace") or UNANSWERED
            except FileNotFoundError:  # its letter was dropped meanwhile
                continue
            except OSError as error:
                came = _why_not(error)
            found.setdefault(letter, {})[replay] = came
        return found

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("*.json")

    def _path(self, identity: str) -> Path:
        return self._folder / f"{identity}.json"

    def _claim(self, identity: str, replay: str) -> Path:
        return self._folder / f"{identity}.{replay}.replay"


def _unreadable(path: Path, error: Exception) -> Letter:
    """What can be told of a letter that cannot be read."""
    try:
        at_ms = int(path.stat().st_mtime * 1_000)
    except OSError:
        at_ms = 0
    return Letter(path.stem, at_ms, UNREADABLE, "", "", 0, {}, "", "", [], None, _why_not(error))


def _why_not(error: Exception) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _with(letter: Letter, replays: dict[str, dict[str, str]]) -> Letter:
    return msgspec.structs.replace(letter, replays={**letter.replays, **replays.get(letter.id, {})})
