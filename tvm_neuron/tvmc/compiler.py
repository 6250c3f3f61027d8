"""compile: a model into a package."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm

from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.errors import OptionError
from tvm_neuron.tvmc.model import TVMCModel
from tvm_neuron.tvmc.package import TVMCPackage, export_package
from tvm_neuron.tvmc.records import found_before, read_records


def compile_model(
    tvmc_model: TVMCModel, target: str, opt_level: int = 3, executor: Any = None, runtime: Any = None,
    tuning_records: str | None = None, package_path: str | os.PathLike[str] | None = None, cross: Any = None,
    cross_options: Any = None, output_format: str = "so", dump_code: Sequence[str] | None = None,
    dump_offloads: str = "", target_host: str | None = None, disabled_pass: Sequence[str] | None = None,
    pass_context_configs: Sequence[str] | None = None, additional_target_options: Mapping[str, Any] | None = None,
    use_vm: bool = False, mod_name: str = "default", *, options: BuildOptions | None = None, **others: Any,
) -> TVMCPackage:  # fmt: skip
    """The model for `target`, in a package at `package_path`, or in one for this process alone.

    `tuning_records` are what `tune` wrote: its choices are made again. `options`: see `BuildOptions`. The arguments
    about the host, passes of TVM and files to look at change nothing.

    Raises OptionError: cross-compilation or another output format is asked for; and what `relay.build` raises.
    """
    del executor, runtime, dump_code, dump_offloads, target_host, additional_target_options, use_vm, others
    del pass_context_configs
    if cross is not None or cross_options is not None or output_format != "so":
        raise OptionError("tvmc.compile: packages hold a library for this machine (output_format 'so', no cross)")
    if tuning_records is not None:
        options = replace(options or BuildOptions(), optlevel=read_records(tuning_records).optlevel)
    with found_before(), tvm.transform.PassContext(opt_level, disabled_pass=list(disabled_pass or ())):
        library = relay.build(
            tvmc_model.mod, target, params=tvmc_model.params, mod_name=mod_name, options=options
        )
    if package_path is not None:
        export_package(library, package_path)
        return TVMCPackage(package_path)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "module.tar")
        export_package(library, path)
        return TVMCPackage(path)
