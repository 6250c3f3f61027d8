"""Options of `tvm.transform.PassContext` by their names of TVM 0.18; some choose nothing here."""

from collections.abc import Mapping
from typing import Any

import tvm

_NOTHING_TO_CHOOSE = (
    "relay.FuseOps.link_params", "relay.FuseOps.max_depth", "relay.ToMixedPrecision.keep_orig_output_dtype",
    "relay.backend.tir_converter", "relay.backend.use_auto_scheduler", "relay.backend.use_meta_schedule",
    "relay.backend.use_meta_schedule_dispatch", "relay.fallback_device_type", "relay.frontend.fill_span",
    "relay.remove_standalone_reshapes.enable", "tir.usmp.algorithm", "tir.usmp.enable", "tir.usmp.use_workspace_io",
)  # fmt: skip
"""What the code generator decides (fusion, memory, schedules) or always does (results keep their dtypes)."""


def install() -> None:
    """`PassContext(config=...)` takes them; again changes nothing. Other names that TVM does not know are its error."""
    context = tvm.transform.PassContext
    theirs = context.__init__
    if getattr(theirs, "takes_relay", False):
        return

    def init(
        self: Any, opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None, instruments: Any = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        theirs(self, opt_level, required_pass, disabled_pass, instruments, _known(config or {}))

    init.takes_relay = True  # type: ignore[attr-defined]
    context.__init__ = init


def _known(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of today's TVM, in which `tir` is `tirx`."""
    names = tvm.transform.PassContext.list_configs()
    left = {name: value for name, value in config.items() if name not in _NOTHING_TO_CHOOSE}
    newer = {name: name.replace("tir.", "tirx.", 1) for name in left if name.startswith("tir.")}
    return {newer[name] if newer.get(name) in names else name: value for name, value in left.items()}
