"""`[task_types.NAME]`: how much a kind of work may read at once, and what all agents together may use for it."""

from typing import Annotated, Literal

from pydantic import Field

from swarmgate.config.callers import Shared

COMPRESS = "compress"


class TaskType(Shared):
    """
    A kind of work, by the word that callers say (`x-swarmgate-task-type`).

    `context` is the longest prompt in tokens (essay A: 16K costs a fifth of 64K and is hardly worse); a longer one is
    refused before anything is sent, or (`over = "compress"`) its older turns give way to a summary. `limits` are caps of all its calls together.
    """

    context: Annotated[int, Field(strict=True, ge=1, le=100_000_000)] | None = None
    over: Literal["refuse", "compress"] = "refuse"
