"""Weights that stay in SBUF between runs: the same numbers, less time, and refusals where they don't fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.random_networks import RandomNetwork
from tests.stages.networks import compile_model, images, run, small_network
from tests.stages.test_small_memory import shrunk
from tvm_neuron import neff
from tvm_neuron.build import BuildOptions, build_options
from tvm_neuron.errors import NeffError, OptionError, ProgramError
from tvm_neuron.isa import Affine, Memset, Tile
from tvm_neuron.program.residents import check_residents
from tvm_neuron.sim import Machine, time_program

STATIC = BuildOptions(static_weights=True)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_same_numbers_in_every_run_and_less_time(chip: str) -> None:
    model = small_network()
    streaming = compile_model(model, f"neuron/{chip}")
    with build_options(STATIC):
        static = neff.read(neff.write(compile_model(model, f"neuron/{chip}")))
    assert static.prologue
    assert static.memory["resident"] > 0
    machine = Machine(static.program, static.device, static.weights, static.prologue)
    for seed in range(2):
        inputs = {"x": np.random.default_rng(seed).standard_normal((1, 3, 20, 20)).astype(np.float32)}
        wanted = run(streaming, inputs)["y"].tobytes()
        for mode in ("nest", "strict", "step"):
            assert machine.run(inputs, mode, seed)["y"].tobytes() == wanted, mode
    timing = time_program(static.program, static.device)
    assert timing.total_ps < time_program(streaming.program, streaming.device).total_ps
    assert "weight" not in timing.dram_bytes_by_kind


@pytest.mark.parametrize("seed", range(4))
def test_random_networks(seed: int) -> None:
    network = RandomNetwork(seed, operators=6)
    inputs = {"x": network.inputs()["x"]}
    (wanted,) = run(compile_model(network.model()), inputs).values()
    with build_options(STATIC):
        static = compile_model(network.model())
    for mode in ("nest", "strict"):
        (actual,) = run(static, inputs, mode, seed).values()
        assert actual.tobytes() == wanted.tobytes(), mode


def test_weights_that_do_not_fit_are_refused_with_what_would_work(tmp_path: Path) -> None:
    target = shrunk(tmp_path, "inf1", 20)
    with build_options(STATIC), pytest.raises(OptionError) as caught:
        compile_model(small_network(channels=256), target)
    text = str(caught.value)
    assert text.startswith("static_weights: the weights of ")
    assert "bytes of each SBUF partition, and " in text
    assert "pipeline_cores of about " in text
    assert "leave static_weights out: then " in text


def _over(static: neff.Neff, offset: int) -> Memset:
    return Memset(result=Tile("sbuf", "float32", Affine(), 32, Affine(offset), ((1, 4),)), value=1.0)


def test_a_program_that_writes_over_what_stays_is_refused() -> None:
    with build_options(STATIC):
        static = compile_model(small_network())
    broken = static.program.with_body((*static.program.body, _over(static, 0)))
    with pytest.raises(ProgramError, match=r"writes bytes 0 to 16 of .*; 0 to .* loaded once for all runs"):
        check_residents(static.loading, broken)
    with pytest.raises(NeffError, match=r"holds no sound program: .* loaded once for all runs"):
        neff.read(neff.write(replace(static, program=broken)))


def test_a_prologue_that_writes_something_else_is_refused() -> None:
    with build_options(STATIC):
        static = compile_model(small_network())
    outputs = static.program.with_body(static.program.body[-1:])
    with pytest.raises(ProgramError, match="a prologue writes SBUF only"):
        check_residents(outputs, static.program)


def test_strict_mode_sees_that_what_stays_was_changed() -> None:
    with build_options(STATIC):
        static = compile_model(small_network())
    machine = Machine(static.program, static.device, static.weights, static.prologue)
    machine.run(images(), "strict")
    machine.program = static.program.with_body((*static.program.body, _over(static, 0)))
    with pytest.raises(ProgramError, match=r"changed byte 0 of SBUF partition 0, which was loaded once"):
        machine.run(images(), "strict")


def test_a_needed_section_that_is_unknown_here_is_refused() -> None:
    with build_options(STATIC):
        data = neff.write(compile_model(small_network()))
    header, sections = neff.container.unpack(data)
    pieces: dict[str, neff.container.Pieces] = {name: [bytes(view)] for name, view in sections.items()}
    newer = b"".join(neff.container.pack(pieces | {"future": [b"x"]}, header.compiler_version, needed={"future"}))
    with pytest.raises(NeffError, match="section 'future' is needed to run it and unknown here: update tvm_neuron"):
        neff.read(newer)
