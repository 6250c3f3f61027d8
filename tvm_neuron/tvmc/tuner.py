"""tune: whether the search of -O3 finds a quicker program, by the modelled time."""

import os
import tempfile
from typing import Any

from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.runtime import report
from tvm_neuron.tvmc.model import TVMCModel
from tvm_neuron.tvmc.records import Records, found_before, read_records, write_records

_USUAL, _SEARCH = BuildOptions().optlevel, 3


def tune_model(
    tvmc_model: TVMCModel, target: str, tuning_records: str | os.PathLike[str] | None = None,
    prior_records: str | os.PathLike[str] | None = None, enable_autoscheduler: bool = False, **others: Any,
) -> str:  # fmt: skip
    """Writes tuning records, to `tuning_records` or a new file, and gives its path; prints what is gained.

    The search is that of `BuildOptions(optlevel=3)`: it needs no device, trials or tuner of TVM's, so `others` change
    nothing. What it finds is kept in the cache, too ($NEURON_CC_CACHE; `off` for none). `prior_records` of the same
    model and target are taken over, since it would find the same again.

    Raises ModelError: the prior records are of another tuner; and what `relay.build` raises.
    """
    del enable_autoscheduler, others
    found = read_records(prior_records) if prior_records is not None else None
    if found is None or not found.model or (found.model, found.target) != (tvmc_model.fingerprint, str(target)):
        with found_before():
            found = _searched(tvmc_model, target)
    if tuning_records is None:
        handle, tuning_records = tempfile.mkstemp(suffix=".json")
        os.close(handle)
    write_records(tuning_records, found)
    print(f"modelled latency: {found.untuned_us:,.1f} us before tuning, {found.tuned_us:,.1f} us after")
    return os.fspath(tuning_records)


def _searched(tvmc_model: TVMCModel, target: str) -> Records:
    times = {}
    for level in (_USUAL, _SEARCH):
        options = BuildOptions(optlevel=level)
        library = relay.build(tvmc_model.mod, target, params=tvmc_model.params, options=options)
        times[level] = report(library).latency_us
    best = min(times, key=lambda level: (times[level], level))
    return Records(best, times[_USUAL], times[best], str(target), tvmc_model.fingerprint)
