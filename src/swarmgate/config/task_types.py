"""`[task_types.NAME]`: how much a kind of work may read at once, and what all agents together may use for it."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from swarmgate.config.callers import Shared
from swarmgate.core.errors import BadInput

REFUSE = "refuse"


def _action(value: object) -> str:
    if value == "compress":
        raise BadInput(
            "", 'compressing is not built yet; write over = "refuse", and let agents make their prompts shorter'
        )
    if value != REFUSE:
        raise BadInput("", f'{value!r} is no action; write over = "refuse"')
    return REFUSE


class TaskType(Shared):
    """
    A kind of work, by the word that callers say (`x-swarmgate-task-type`).

    `context` is the longest prompt in tokens (essay A: 16K costs a fifth of 64K and is hardly worse); a longer one is
    refused before anything is sent. `limits` are caps of all its calls together.
    """

    context: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    over: Annotated[str, BeforeValidator(_action)] = REFUSE
