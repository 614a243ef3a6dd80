"""
A simulated disk (ports.Disk): what a process sees, and what is really on it.

Both are the same once a file and its folder were synced. When the power goes, each sector that was written since and each
change of a name is kept or lost, as the seed says: so files are torn, and changes come in any order (reliability 3, LG-09).
The weather's faults are made here: no room, errors of input and output, syncs that lie.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.ports import FileFacts

SECTOR = 512


class PowerLost(BaseException):
    """The machine is dark in the middle of a write; whoever runs on it ends here, and catches nothing."""


class SimFile:
    """A file as it is seen (`room`) and as it lies on the disk (`kept`), by whatever name."""

    __slots__ = ("changed_ms", "kept", "room")

    def __init__(self, room: bytes, changed_ms: int) -> None:
        self.room = bytearray(room)
        self.kept = b""
        self.changed_ms = changed_ms


class SimDisk:
    """The disk of one gate's machine, called as the gate is; `syncs` are told of what they reached."""

    __slots__ = ("_at_write", "_boots", "_kept", "_locks", "_name", "_pending", "_rng", "_seen", "_time", "_weather")

    def __init__(self, name: str, time: VirtualTime, weather: Weather, rng: Random) -> None:
        self._name = name
        self._time = time
        self._weather = weather
        self._rng = rng
        self._seen: dict[Path, SimFile] = {}
        self._kept: dict[Path, SimFile] = {}
        self._pending: list[Callable[[dict[Path, SimFile]], object]] = []  # changes of names that no sync has reached
        self._locks: set[Path] = set()
        self._at_write = 0
        self._boots = 1

    def boot_id(self) -> str:
        """One more after each loss of power."""
        return f"{self._name} {self._boots}"

    def cut_at_write(self, number: int) -> None:
        """The power goes at so many writes from now on; 0 = it does not."""
        self._at_write = number

    def process_ended(self) -> None:
        """Whoever held something here died."""
        self._locks.clear()

    def lose_power(self) -> None:
        """What was not synced is lost, or not, sector by sector and name by name."""
        self.process_ended()
        self._boots += 1
        self._at_write = 0
        for change in self._pending:
            if self._rng.getrandbits(1):
                change(self._kept)
        self._pending.clear()
        for file in self._kept.values():
            if file.kept != file.room:
                file.kept = self._torn(bytes(file.room), file.kept)
                file.room = bytearray(file.kept)
        self._seen = dict(self._kept)

    def _torn(self, new: bytes, old: bytes) -> bytes:
        size = len(self._rng.choice((new, old)))
        parts = [self._rng.choice((new, old))[at : at + SECTOR] for at in range(0, size, SECTOR)]
        return b"".join([part.ljust(SECTOR, b"\0") for part in parts])[:size]

    def _write(self, *, grows: bool = False) -> None:
        """One write reaches the disk: it may fail, or be the last one."""
        if self._at_write:
            self._at_write -= 1
            if not self._at_write:
                raise PowerLost
        if grows and self._weather.now("disk_full", self._name):
            self._weather.meet("disk_full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._may_fail()

    def _may_fail(self) -> None:
        if self._weather.strikes("disk_error", self._name):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _rename(self, change: Callable[[dict[Path, SimFile]], object]) -> None:
        change(self._seen)
        self._pending.append(change)

    def _lies(self) -> bool:
        lie = self._weather.now("disk_lie", self._name)
        if lie is not None:
            self._weather.meet("disk_lie")
        return lie is not None

    def _file(self, path: Path) -> SimFile:
        self._may_fail()
        if path not in self._seen:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self._seen[path]

    def make(self, folder: Path) -> None:
        """Folders need nothing here."""

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder."""
        self._may_fail()
        return [path.name for path in self._seen if path.parent == folder]

    def exists(self, path: Path) -> bool:
        """Whether there is such a file."""
        self._may_fail()
        return path in self._seen

    def facts(self, path: Path) -> FileFacts:
        """How long it is, and when it was changed."""
        file = self._file(path)
        return FileFacts(len(file.room), file.changed_ms)

    def read(self, path: Path, offset: int = 0, most: int = -1) -> bytes:
        """What stands there from `offset` on."""
        room = self._file(path).room
        return bytes(room[offset : len(room) if most < 0 else offset + most])

    def write(self, path: Path, data: bytes) -> None:
        """Beside it, synced, renamed, and the folder synced: each of these may fail or be the last."""
        fresh = path.with_name(f"{path.name}.new")
        self._write(grows=True)
        file = SimFile(data, self._time.now_ms())
        self._rename(lambda names: names.update({fresh: file}))
        self.sync_file(file)
        self._write()
        self._rename(lambda names: _moved(names, fresh, path))
        self.sync(path.parent)

    def rename(self, path: Path, name: str) -> None:
        """Give it another name."""
        self._file(path)
        self._write()
        self._rename(lambda names: _moved(names, path, path.with_name(name)))

    def remove(self, path: Path) -> None:
        """Have it gone."""
        self._write()
        if path in self._seen:
            self._rename(lambda names: names.pop(path, None))

    def sync(self, folder: Path) -> None:  # noqa: ARG002  one folder's changes are all there are
        """Every change of a name is on the disk, unless it lies."""
        self._write()
        if not self._lies():
            for change in self._pending:
                change(self._kept)
            self._pending.clear()

    def sync_file(self, file: SimFile) -> None:
        """What it holds is on the disk, unless it lies."""
        self._write()
        if not self._lies():
            file.kept = bytes(file.room)

    def lock(self, path: Path) -> int | None:
        """Hold it until the process ends."""
        if path not in self._seen:
            self._write(grows=True)
            file = SimFile(b"", self._time.now_ms())
            self._rename(lambda names: names.update({path: file}))
        if path in self._locks:
            return None
        self._locks.add(path)
        return id(path)

    def unlock(self, lock: int) -> None:  # noqa: ARG002  a process holds one
        """Let it go."""
        self._locks.clear()

    def reserve(self, path: Path, size: int) -> "SimReserved":
        """A new file with its whole room."""
        self._write(grows=True)
        file = SimFile(bytes(size), self._time.now_ms())
        self._rename(lambda names: names.update({path: file}))
        return SimReserved(self, path, file)

    def seen(self, path: Path) -> SimFile | None:
        """The file of that name."""
        return self._seen.get(path)

    def cut(self, file: SimFile, size: int) -> None:
        """A file ends after so many bytes from now on."""
        self._write()
        file.room = file.room[:size]
        file.changed_ms = self._time.now_ms()


class SimReserved:
    """A file whose room is written without calls of the system (ports.Reserved)."""

    __slots__ = ("_at", "_disk", "_file", "_path", "write")

    def __init__(self, disk: SimDisk, path: Path, file: SimFile) -> None:
        self._disk = disk
        self._path = path
        self._file = file
        self._at = 0
        self.write: Callable[[bytes], object] = self._write

    def _write(self, data: bytes) -> None:
        end = self._at + len(data)
        if end > len(self._file.room):
            raise ValueError("there is no room for it")
        self._file.room[self._at : end] = data
        self._at = end

    def written(self) -> int:
        """How many bytes were."""
        return self._at

    def is_there(self) -> bool:
        """Whether its file still has its name."""
        return self._disk.seen(self._path) is self._file

    def sync(self) -> None:
        """Its bytes, and its name."""
        self._disk.sync_file(self._file)
        self._disk.sync(self._path.parent)

    def apart(self) -> Callable[[], None]:
        """There are no threads here."""
        return self.sync

    def close(self) -> None:
        """It ends after what was written."""
        self._disk.cut(self._file, self._at)


def _moved(names: dict[Path, SimFile], path: Path, to: Path) -> None:
    file = names.pop(path, None)
    if file is not None:
        names[to] = file
