"""A dead letter sent again through the gate, like any call of an agent: once per replay id, through every budget."""

import http.client
from collections.abc import Callable
from contextlib import closing
from typing import Final, NamedTuple

from swarmgate.stores.letters.letter import REPLAY_OF, Letter
from swarmgate.stores.letters.shelf import Shelf

ANSWER_S: Final = 600.0


class Replayed(NamedTuple):
    """What the gate answered."""

    status: int
    answer: str


class NoAnswer(ConnectionError):
    """It was sent, and nobody knows what came of it."""


def replay(
    shelf: Shelf,
    letter: Letter,
    replay_id: str,
    link: http.client.HTTPConnection,
    key: str,
    told: Callable[[], object],
) -> Replayed:
    """
    Send a letter that has its body over a connection to a gate's data port; `key` is the sender's agent key, if it has one.

    The id is claimed once the gate is reached, and `told` is called then: whatever becomes of the answer, it was sent.
    Errors: `BadInput` for one that was used; OSError if the gate is not reached; `NoAnswer`.
    """
    with closing(link):
        link.connect()
        shelf.claim(letter.id, replay_id)
        told()
        headers = dict(letter.headers) | {REPLAY_OF: letter.id} | ({"x-swarmgate-key": key} if key else {})
        try:
            link.request(letter.method, letter.path, letter.body, headers)
            answer = link.getresponse()
            came = Replayed(answer.status, answer.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(
                f"{letter.id} was sent as {replay_id}, and no whole answer came ({type(error).__name__}); look what it "
                "did before you send it under another replay id"
            ) from error
    shelf.came(letter.id, replay_id, str(came.status))
    return came
