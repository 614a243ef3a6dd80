"""
The disk of this machine (ports.Disk): files for the owner alone, written so that a loss of power leaves a whole one.

Nothing here decides; who keeps what, and what a lost file means, stands in stores/.
"""

import errno
import mmap
import os
import stat
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Final

from swarmgate.ports import FileFacts

_OTHERS_WRITE: Final = 0o022
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")  # Linux


class SystemDisk:
    """Calls of the system, one or a few for each method."""

    def boot_id(self) -> str:
        """As the kernel names it; where it does not, no two processes agree."""
        try:
            return BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            return f"process {os.getpid()}"

    def make(self, folder: Path) -> None:
        """A folder for its owner alone, if there is none; in one of ours others may no longer write: they could put files in (SC-04)."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_mode & _OTHERS_WRITE and status.st_uid == os.geteuid():
            folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder; nothing if there is none."""
        try:
            return [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []

    def exists(self, path: Path) -> bool:
        """Whether there is such a file."""
        return path.exists()

    def facts(self, path: Path) -> FileFacts:
        """How long it is, and when it was changed."""
        found = path.stat()
        return FileFacts(found.st_size, int(found.st_mtime * 1_000))

    def read(self, path: Path, offset: int = 0, most: int = -1) -> bytes:
        """What stands there from `offset` on."""
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(most)

    def write(self, path: Path, data: bytes) -> None:
        """Beside it first, on the disk itself, and then in its place."""
        fresh = path.with_name(f"{path.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        self.sync(path.parent)

    def rename(self, path: Path, name: str) -> None:
        """Give it another name in its folder."""
        path.replace(path.with_name(name))

    def remove(self, path: Path) -> None:
        """Have it gone."""
        path.unlink(missing_ok=True)

    def sync(self, folder: Path) -> None:
        """Wait until the disk itself has the names of a folder; some file systems of a network know no such thing."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> int | None:
        """Make the file if there is none, and hold it as long as this process lives."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def unlock(self, lock: int) -> None:
        """Let it go."""
        os.close(lock)

    def reserve(self, path: Path, size: int) -> "ReservedFile":
        """A new file that has its whole room from the beginning."""
        return ReservedFile(path, size)


class ReservedFile:
    """Its memory is written, which is on file at once, whoever dies then (ports.Reserved)."""

    __slots__ = ("_fd", "_folder", "_room", "write")

    def __init__(self, path: Path, size: int) -> None:
        self._folder: Path | None = path.parent  # until its name is known to be on the disk
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, 0, size)
            else:  # macOS: the room is promised by nobody
                os.ftruncate(self._fd, size)
            self._room = mmap.mmap(self._fd, size)
        except OSError:
            os.close(self._fd)
            path.unlink(missing_ok=True)
            raise
        self.write: Callable[[bytes], object] = self._room.write

    def written(self) -> int:
        """How many bytes were."""
        return self._room.tell()

    def is_there(self) -> bool:
        """Whether its file still has a name."""
        return os.fstat(self._fd).st_nlink > 0

    def sync(self) -> None:
        """Wait until the disk itself has it, and at the first time its name too."""
        os.fsync(self._fd)
        self._sync_name()

    def apart(self) -> Callable[[], None]:
        """The same by a descriptor of its own, which `close` does not touch."""
        descriptor = os.dup(self._fd)

        def work() -> None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._sync_name()

        return work

    def _sync_name(self) -> None:
        folder = self._folder
        if folder is not None:
            DISK.sync(folder)
            self._folder = None

    def close(self) -> None:
        """It ends after what was written."""
        written = self.written()
        self._room.close()
        try:
            os.ftruncate(self._fd, written)
        finally:
            os.close(self._fd)


DISK: Final = SystemDisk()
