"""A dead letter sent again through the gate, like any call of an agent: once per replay id, through every budget."""

import http.client
from contextlib import closing
from typing import Final, NamedTuple

from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf

ANSWER_S: Final = 600.0


class Replayed(NamedTuple):
    """What the gate answered."""

    status: int
    answer: str


def replay(shelf: Shelf, letter: Letter, replay_id: str, link: http.client.HTTPConnection, key: str = "") -> Replayed:
    """
    Send a letter that has its body over a connection to a gate's data port; `key` is the sender's agent key.

    The id is claimed once the gate is reached. Errors: `BadInput` for one that was used; OSError, `HTTPException`.
    """
    with closing(link):
        link.connect()
        shelf.claim(letter.id, replay_id)
        headers = dict(letter.headers) | ({"x-swarmgate-key": key} if key else {})
        link.request(letter.method, letter.path, letter.body, headers)
        answer = link.getresponse()
        told = Replayed(answer.status, answer.read().decode("utf-8", "replace"))
    shelf.came(letter.id, replay_id, str(told.status))
    return told
