"""The other simulators: what each is, where its Python is found, and what it leaves out."""

import os
from dataclasses import dataclass
from pathlib import Path


class AbsentError(Exception):
    """A simulator that is to be measured isn't there; the message says how to install it."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One simulator, which has a virtual environment of its own: their requirements exclude each other's."""

    name: str
    distribution: str
    requirements: str
    script: str
    leaves_out: str

    @property
    def option(self) -> str:
        """The option that gives its Python."""
        return "--" + self.name.lower()

    @property
    def variable(self) -> str:
        """The environment variable that does, too."""
        return self.name.upper().replace("-", "_") + "_PYTHON"

    @property
    def install(self) -> str:
        """The commands that make its environment."""
        folder = f"build/{self.name.lower()}"
        return f"python3 -m venv {folder} && {folder}/bin/pip install {self.requirements}"

    def python(self, given: Path | None) -> Path:
        """The Python to run it with: `given`, or what the variable says.

        Raises:
            AbsentError: there is neither, or no such file.
        """
        place = str(given or os.environ.get(self.variable, ""))
        if place and Path(place).is_file():
            return Path(place).absolute()  # not resolved: a link into an environment means that environment
        problem = f"there is no {place}" if place else f"neither {self.option} nor {self.variable} gives its Python"
        how = f"run `{self.install}`, then give build/{self.name.lower()}/bin/python"
        raise AbsentError(f"{self.name} is left out: {problem}; {how}")


SCALE_SIM = Peer(
    name="SCALE-Sim", distribution="scalesim", requirements="'scalesim==3.0.0' 'numpy<2.4'", script="run_scale_sim.py",
    leaves_out="outputs; all operators but convolutions and dense layers; what stays on chip between layers",
)  # fmt: skip
ZIGZAG = Peer(
    name="ZigZag", distribution="zigzag-dse", requirements="'zigzag-dse==3.9.1' six", script="run_zigzag.py",
    leaves_out="outputs; a program (formulas for the best loop order of each layer); all operators but convolutions "
    "and dense layers",
)  # fmt: skip
VELA = Peer(
    name="Vela", distribution="ethos-u-vela", requirements="'ethos-u-vela==5.2.0'", script="run_vela.py",
    leaves_out="outputs; floating point (int8 only); arrays of more than 2,048 multipliers, an eighth of the others'; "
    "time is an estimate of each operator",
)  # fmt: skip
PEERS = (VELA, ZIGZAG, SCALE_SIM)  # the quickest first
