"""A new engine is one line in `isa/engines.py`, and an instruction of it one class: nothing else lists engines."""

import subprocess
import sys

SCRIPT = '''
import sys
from importlib.machinery import PathFinder, SourceFileLoader


class Loader(SourceFileLoader):
    """The list of engines with one more."""

    def get_code(self, fullname):
        last = b'    Engine("gpsimd", "GpSimd", "gpsimd_clock_hz", reads_late=True),\\n'
        source = self.get_data(self.path)
        assert last in source
        new = last.replace(b'"gpsimd", "GpSimd"', b'"spare", "Spare"')
        return self.source_to_code(source.replace(last, last + new), self.path)


class Finder(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        found = super().find_spec(fullname, path, target) if fullname == "tvm_neuron.isa.engines" else None
        if found is not None:
            found.loader = Loader(fullname, found.origin)
        return found


sys.meta_path.insert(0, Finder)
import numpy as np
import tvm_neuron.isa as isa
from tvm_neuron import neff, nki
from tvm_neuron.nki import language as nl
from tvm_neuron.nki.trace import current
from tvm_neuron.profile import make_report, run_of, timeline
from tvm_neuron.program.text import parse_program, print_program


class SpareCopy(isa.Activation, opcode=0x7F, engine="spare", mnemonic="spare_copy"):
    """As of Scalar, on another engine."""

    def compute(self, *sources):
        return super().compute(*sources)

    def cost(self, device):
        return super().cost(device)


isa.BY_OPCODE[0x7F] = isa.BY_MNEMONIC["spare_copy"] = SpareCopy


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile, powers = nl.load(x), nl.ndarray(x.shape, x.dtype)
    current().settle()
    current().groups.append([])
    current().emit(SpareCopy, {"result": powers, "source": tile}, scale=1.0, bias=0.0, function="exp")
    nl.store(out, powers + tile)
    return out


x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
traced = kernel.trace(x)
assert np.allclose(traced.run("strict"), np.exp(x) + x, atol=1e-5)
assert traced.time().busy_ps["spare"] > 0
core = neff.read(neff.write(traced.neff()))
assert core.program == traced.assembled.program == parse_program(print_program(core.program))
parts = [neff.Pipeline("kernel", core.inputs, core.outputs, (core,))]
(use,) = (use for use in make_report((), parts).engines if use.queue == "spare")
assert use.busy_us > 0
assert "spare" in str(timeline(run_of(parts)))
'''


def test_an_engine_is_added_in_one_place() -> None:
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
