"""write_bundle: what is known of a defect as one file, in a folder of the user's and without weights."""

import json
import os
import platform
import re
import traceback
import zipfile
from hashlib import sha256
from importlib.metadata import distributions
from io import BytesIO
from pathlib import Path

from tvm_neuron import neff
from tvm_neuron.errors import InternalError

FOLDER_VARIABLE = "NEURON_CC_BUNDLES"
# A number, or a hash that it can be guessed from.
_NUMBER = re.compile(
    r"(?<=R\.const\()[^,)]+|(?<=pad_value=)[^,)]+|(?<=T\.float(?:16|32|64)\()[^,)]+|(?<=T\.bfloat16\()[^,)]+|"
    r"(?<=constant )[0-9a-f]{64}"
)


def write_bundle(error: InternalError) -> str:
    """Writes `CODE-HASH.zip` into $NEURON_CC_BUNDLES, else $XDG_STATE_HOME/tvm_neuron/bundles; gives its path.

    It holds the traceback, the versions of everything, and the text of the part of the model, in which a question mark
    stands for constants of one number, as weights can be; others are not in it. The same is written once.

    Raises:
        OSError, NeffError: it can't be written there.
    """
    part = _NUMBER.sub("?", error.part)
    files = {"traceback.txt": "".join(traceback.format_exception(error)), "part.txt": part, "facts.json": facts()}
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{error.code}-{sha256(json.dumps(files).encode()).hexdigest()[:16]}.zip"
    held = BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in files.items():
            bundle.writestr(name, text)
    neff.write_aside(str(path), [held.getvalue()])
    return str(path)


def facts() -> str:
    """The versions of everything here, as JSON."""
    found = {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "packages": {each.metadata["Name"]: each.version for each in distributions()},
    }
    return json.dumps(found, indent=2, sort_keys=True)


def _folder() -> Path:
    """By the XDG base directory specification, which has relative paths ignored."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given).expanduser()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path("~/.local/state").expanduser()) / "tvm_neuron" / "bundles"
