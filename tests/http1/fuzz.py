"""
Looks for streams of requests that readers disagree on: `python tests/http1/fuzz.py SEED COUNT`.

Each stream that makes the gate do what no stream of `tests/data/http_seeds.json` makes it do is added there, and every disagreement.
`test_seeds_replayed.py` replays them; whatever is found wrong stays found.
"""

import json
import random
import sys
from pathlib import Path

SEEDS = Path(__file__).resolve().parents[1] / "data" / "http_seeds.json"
ODD_BYTES = [b"\r", b"\n", b" ", b"\t", b":", b"\0", b"0", b",", b";", b"\x0b", b"\x80", b"a"]


def mended(raw: bytes, dice: random.Random, pieces: list[bytes]) -> bytes:
    """`raw` with one to three bytes or pieces exchanged, cut out or put in."""
    text = bytearray(raw)
    for _ in range(dice.randint(1, 3)):
        at, kind = dice.randrange(len(text)), dice.randrange(3)
        if kind == 0:
            text[at : at + 1] = dice.choice(ODD_BYTES)
        elif kind == 1 and len(text) > 9:
            del text[at : at + dice.randint(1, 3)]
        else:
            text[at:at] = dice.choice(pieces)
    return bytes(text)


def streams(seed: int, count: int, whole: list[bytes], pieces: list[bytes]):
    """`count` streams: pieces in any order, or one of `whole` that was changed."""
    dice = random.Random(seed)
    for _ in range(count):
        if dice.random() < 0.5:
            yield b"".join(dice.choice(pieces) for _ in range(dice.randint(1, 10)))
        else:
            yield mended(dice.choice(whole), dice, pieces)


def main(seed: int, count: int) -> None:
    """Print what readers disagree on; write what is new."""
    from test_differential import FUZZ_PIECES, HONEST, SMUGGLING, disagreements, outcome

    rows = json.loads(SEEDS.read_text())
    known = {json.dumps(row["outcome"]) for row in rows}
    for raw in streams(seed, count, SMUGGLING + HONEST, FUZZ_PIECES):
        said, apart = outcome([raw]), disagreements(raw)
        if apart:
            print(raw, said, *apart, sep="\n    ")
        if apart or json.dumps(said) not in known:
            known.add(json.dumps(said))
            rows.append({"raw": raw.decode("latin-1"), "outcome": said})
    rows.sort(key=lambda row: (row["outcome"], row["raw"]))
    SEEDS.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(f"{len(rows)} seeds")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
