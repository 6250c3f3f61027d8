"""`tvm.contrib.utils`: folders that go away with the object that names them."""

import os
import tempfile
import weakref
from pathlib import Path
from shutil import rmtree


class TempDirectory:
    """A new folder, or the one at `custom_path`; a new one is removed with this object, unless it is kept."""

    def __init__(self, custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool = False) -> None:
        if custom_path is not None:
            Path(custom_path).mkdir(parents=True, exist_ok=True)
        self.temp_dir = tempfile.mkdtemp() if custom_path is None else os.fspath(custom_path)
        if custom_path is None and not keep_for_debug:
            weakref.finalize(self, rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.temp_dir)

    def remove(self) -> None:
        """Removes the folder now."""
        rmtree(self.temp_dir, ignore_errors=True)

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, other: str | os.PathLike[str]) -> Path:
        return self.path / other


def tempdir(custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """A folder that is removed when the result is no longer used; `custom_path` names one that stays."""
    return TempDirectory(custom_path, keep_for_debug)
