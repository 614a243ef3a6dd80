"""A key never stands in the file: it is named (`env:NAME`, `file:PATH`) and kept as a secret that shows itself to nobody."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Never, Self

from pydantic import BeforeValidator, SecretStr, ValidationInfo

from swarmgate.core.errors import BadInput

_KEY = re.compile(r"[!-~]{1,4096}")
_STAND_IN = "not-read"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # anything else may be a key written by mistake: it is not repeated


class HiddenKey(SecretStr):
    """A key that shows itself as stars in every form, and goes into no other process or file (reliability SC-07); `file` has it, if one has."""

    file = ""

    def __reduce_ex__(self, _protocol: object) -> Never:
        """Errors: TypeError, always."""
        raise TypeError("a key is not pickled")

    def __copy__(self) -> Self:
        """Itself: nothing changes it."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself: nothing changes it."""
        return self


class NoKeys(Mapping[str, str]):
    """An environment for who needs no key: none is read, from a variable or from a file, and something stands for each."""

    def __getitem__(self, _name: str) -> str:
        return _STAND_IN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _secret(reference: object, info: ValidationInfo) -> HiddenKey:
    """Errors never repeat what was written: it may be the key itself."""
    if isinstance(reference, HiddenKey):  # no file has one: it stands for a key that is wrong
        return reference
    kind, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if kind == "env" and _VARIABLE.fullmatch(name):
        key = None if info.context is None else info.context.get(name)
        if key is None:
            raise BadInput("", f"the environment has no {name}")
    elif kind == "file" and isinstance(info.context, NoKeys):
        return HiddenKey(_STAND_IN)
    elif kind == "file":
        try:
            key = Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise BadInput("", f"the file {name} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadInput("", f"the file {name} holds no text") from None
    else:
        raise BadInput("", "must be env:NAME or file:PATH; a key does not stand in this file")
    if not _KEY.fullmatch(key):
        raise BadInput("", f"{kind}:{name} does not hold one key: visible ASCII without spaces")
    made = HiddenKey(key)
    made.file = name if kind == "file" else ""
    return made


Secret = Annotated[HiddenKey, BeforeValidator(_secret)]
