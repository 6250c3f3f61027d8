"""What float32 becomes, in the words of the original command lines.

neuron-cc's --fp32-cast and --fast-math, neuronx-cc's --auto-cast and --auto-cast-type; --fp32-cast-of for single
operators.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from tvm_neuron.codegen.precision import FP32_CAST
from tvm_neuron.errors import OptionError

MODES = tuple(FP32_CAST)
_FAST_MATH = {
    "all": ("all", True),
    "none": ("matmult-bf16", False),
    "fp32-cast-all": ("all", None),
    "fp32-cast-all-fp16": ("all-fp16", None),
    "fp32-cast-matmult": ("matmult", None),
    "fp32-cast-matmult-bf16": ("matmult-bf16", None),
    "fp32-cast-matmult-fp16": ("matmult-fp16", None),
    "fast-relayout": (None, True),
    "no-fast-relayout": (None, False),
}
"""What each word says of (float32's precision, rounding where data change places); None: nothing."""
_WHOLE = ("all", "none")
_AUTO_CAST = {
    ("none", "bf16"): "none", ("none", "fp16"): "none",
    ("matmult", "bf16"): "matmult-bf16", ("matmult", "fp16"): "matmult-fp16",
    ("all", "bf16"): "all", ("all", "fp16"): "all-fp16",
}  # fmt: skip


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """The arguments about precision."""
    parser.add_argument(
        "--fp32-cast",
        choices=MODES,
        help="all: float32 is kept and multiplied as bfloat16 (the default), all-fp16: as float16; matmult, "
        "matmult-bf16, matmult-fp16: only where the PE array multiplies; none: nowhere",
    )
    parser.add_argument(
        "--fast-math",
        nargs="+",
        choices=list(_FAST_MATH),
        metavar="WORD",
        help=f"the same and more in several words: {', '.join(_FAST_MATH)}; --fp32-cast overrides it",
    )
    parser.add_argument(
        "--auto-cast",
        choices=["none", "matmult", "all"],
        help="neuronx-cc's word for --fp32-cast, with --auto-cast-type bf16 (default) or fp16",
    )
    parser.add_argument("--auto-cast-type", choices=["bf16", "fp16", "tf32", "fp8_e4m3"], help=argparse.SUPPRESS)
    parser.add_argument(
        "--fp32-cast-of",
        action="append",
        default=[],
        metavar="PATTERN=MODE",
        help="another mode for the operators whose names fit: 'layer3*=none'; of several that fit the last counts",
    )
    parser.add_argument(
        "--enable-saturate-infinity",
        action="store_true",
        help="infinities become the largest numbers before arithmetic makes NaN of them; costs time",
    )


def as_build_options(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments as fields of BuildOptions.

    Raises:
        OptionError: words that contradict each other, or a mode that does not exist.
    """
    cast, relayout = _fast_math(options.fast_math or ["all"])
    return {
        "fp32_cast": _auto_cast(options) or options.fp32_cast or cast,
        "fp32_cast_of": dict(rule(text, "--fp32-cast-of") for text in options.fp32_cast_of),
        "fast_relayout": relayout,
        "saturate_infinity": options.enable_saturate_infinity,
    }


def _fast_math(words: Sequence[str]) -> tuple[str, bool]:
    """all ~ fp32-cast-all fast-relayout, none ~ fp32-cast-matmult-bf16 no-fast-relayout; finer words override both."""
    whole = [word for word in words if word in _WHOLE]
    casts = [word for word in words if word not in _WHOLE and _FAST_MATH[word][0] is not None]
    relayouts = [word for word in words if word not in _WHOLE and _FAST_MATH[word][1] is not None]
    for group in (whole, casts, relayouts):
        if len(set(group)) > 1:
            raise OptionError(f"--fast-math: {' and '.join(dict.fromkeys(group))} exclude each other: give one of them")
    cast, relayout = _FAST_MATH[whole[0] if whole else "all"]
    cast = _FAST_MATH[casts[0]][0] if casts else cast
    relayout = _FAST_MATH[relayouts[0]][1] if relayouts else relayout
    return str(cast), bool(relayout)


def _auto_cast(options: argparse.Namespace) -> str | None:
    if options.auto_cast is None and options.auto_cast_type is None:
        return None
    if options.fp32_cast or options.fast_math:
        raise OptionError("--auto-cast says what --fp32-cast and --fast-math say: give one of them")
    kind = options.auto_cast_type or "bf16"
    if kind not in ("bf16", "fp16"):
        raise OptionError(f"--auto-cast-type {kind}: the modelled PE array multiplies bf16 and fp16; take one of these")
    return _AUTO_CAST[options.auto_cast or "matmult", kind]


def rule(text: str, option: str) -> tuple[str, str]:
    """Pattern and mode of PATTERN=MODE.

    Raises:
        OptionError: it has another form; the message names the option.
    """
    pattern, separator, mode = text.rpartition("=")
    if not separator or not pattern or mode not in MODES:
        raise OptionError(f"{option} '{text}' is not PATTERN=MODE with a mode of {', '.join(MODES)}")
    return pattern, mode
