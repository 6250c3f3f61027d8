"""Sphinx: the pages that `make docs` builds, of docs/*.md, the tutorials and the docstrings."""

import re
import sys
import warnings
from pathlib import Path
from typing import Any

from sphinx.ext.autodoc.mock import _MockObject

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tvm_neuron.runtime import VERSION  # noqa: E402

project = "tvm_neuron"
release = version = VERSION
extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.napoleon", "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]  # fmt: skip
exclude_patterns = ["tutorials/*.py", "tutorials/*.md5", "tutorials/*.ipynb"]
html_theme = "alabaster"
html_theme_options = {
    "description": "An ahead-of-time compiler for NeuronCore-like accelerators",
    "page_width": "84em",
    "body_max_width": "none",
}
default_role = "code"  # in docstrings single backticks are code
myst_heading_anchors = 4
autodoc_mock_imports = [  # pages of what stands on extras are made without them
    "fastapi", "grpc", "kserve", "onnxscript", "orjson", "prometheus_client", "ray", "starlette", "tensorflow",
    "tf2onnx", "torch", "uvicorn",
]  # fmt: skip
_MockObject.__or__ = lambda self, _other: self  # in annotations, `Tensor | None`
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
sphinx_gallery_conf = {
    "examples_dirs": "../tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "image_scrapers": (),
    "reset_modules": (),
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "show_memory": False,
}
warnings.filterwarnings("ignore", category=ResourceWarning)
_STAR = re.compile(r"(\\\*|`[^`]*`|>>> .*)|\*")
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")


def _link(found: re.Match[str]) -> str:
    """Tutorials have pages; files of the project have none, and are named."""
    text, target = found.groups()
    folder, _, name = target.partition("/")
    return f"[{text}](tutorials/{Path(name).stem}.rst)" if folder == "tutorials" else text


def _inside(_app: Any, _page: str, source: list[str]) -> None:
    source[0] = _LINK.sub(_link, source[0])


def _plain(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """A star in a docstring is a product or any text, and no emphasis."""
    lines[:] = [_STAR.sub(lambda found: found[1] or r"\*", line) for line in lines]


def setup(app: Any) -> None:
    """Links of docs/*.md that lead out of the folder, and docstrings as they are meant."""
    app.connect("source-read", _inside)
    app.connect("autodoc-process-docstring", _plain)
