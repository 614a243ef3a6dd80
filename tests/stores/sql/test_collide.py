"""Four processes that write the same files: nothing is lost, nothing is done twice, and nobody meets a busy file (LG-07)."""

import os
from collections import Counter

from sqlalchemy import select

from swarmgate.core.once import Ruling, Standing
from swarmgate.stores.sql import tables
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.writes import Stored, Writes

PROCESSES = 4
EACH = 25


def work(folder, process, told):
    """Every process asks for every write, and puts calls of its own into the ledger."""
    writes, ledger = Writes.opened(folder), Ledger.opened(folder)
    for number in range(EACH):
        key, call = f"k{number}", f"{process}-{number}"
        ruling, _ = writes.begin(key, "p", call, "run", 1_000)
        os.write(told, f"{key} {ruling.value}\n".encode())
        with ledger.connection() as link:
            link.execute(tables.calls.insert(), [{"id": call}])
        if ruling is Ruling.PROCEED:
            writes.end(key, call, Standing.DONE, 1_001, Stored(call, 200, "", b"made"))
    writes.close()
    ledger.close()


def test_lg_07_four_processes_on_one_folder(tmp_path):
    Writes.opened(tmp_path).close()
    Ledger.opened(tmp_path).close()
    told = os.open(tmp_path / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    children = []
    for process in range(PROCESSES):
        child = os.fork()
        if child == 0:
            try:
                work(tmp_path, process, told)
            except BaseException as error:  # noqa: BLE001  it must not come back into pytest
                os.write(told, f"failed {error!r}\n".encode())
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(told)
    lines = [line.split(" ", 1) for line in (tmp_path / "told").read_text().splitlines()]
    assert [line for line in lines if line[0] == "failed"] == []
    rulings = Counter(map(tuple, lines))
    assert {key: rulings[key, "proceed"] for key, _ in lines} == {f"k{number}": 1 for number in range(EACH)}
    assert sum(rulings.values()) == PROCESSES * EACH
    assert {ruling for _, ruling in lines} <= {"proceed", "conflict", "replay"}
    ledger = Ledger.to_read(tmp_path)
    with ledger.connection() as link:
        assert len(link.execute(select(tables.calls.c.id)).all()) == PROCESSES * EACH
    ledger.close()
