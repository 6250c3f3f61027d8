"""points: the product of models, chips and what else is varied, each a device and options that exist."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from types import NoneType
from typing import Any

from tvm_neuron.bundle import IoConfig
from tvm_neuron.cache import fingerprint
from tvm_neuron.codegen.options import LEVELS, BuildOptions
from tvm_neuron.codegen.precision import FP32_CAST
from tvm_neuron.codegen.tuning import CANDIDATES
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.frontend.onnx.files import model_files
from tvm_neuron.hw import Device, load_device, load_instance
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.runtime import host

Value = bool | int | float | str | None
BATCH = "batch"
_TYPES: dict[Any, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int,), int | None: (int, NoneType), float | None: (float, NoneType),
}  # fmt: skip
_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number", NoneType: "none"}
OPTIONS = {
    each.name: _TYPES[each.type]
    for each in fields(BuildOptions)
    if each.type in _TYPES and each.name in BuildOptions().to_dict().keys() - {"device"}
}
"""The fields of BuildOptions that can be varied, and what their values may be."""
_ALL: dict[str, Sequence[Value]] = {
    "optlevel": LEVELS, "fp32_cast": tuple(FP32_CAST), "host_cpu": tuple(host.LEVELS), **CANDIDATES,
}  # fmt: skip
_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Point:
    """One of the product: `choice` has the varied names with their values, `key` is the hash of all it is made from."""

    model: str
    chip: str
    choice: Mapping[str, Value]
    device: Device
    options: BuildOptions
    inputs: IoConfig
    key: str

    @property
    def batch(self) -> int | None:
        """Rows of each input; None: as in the file."""
        found = self.choice.get(BATCH)
        return found if isinstance(found, int) else None


def parse(text: str) -> tuple[str, list[Value]]:
    """What `NAME=VALUE,VALUE` says; the name alone stands for all the values that it has.

    Raises:
        OptionError: there is no such name, no list of its values, or one is of another kind.
    """
    name, _, given = text.partition("=")
    types = _types(name)
    if not given:
        known = (False, True) if types == (bool,) else _ALL.get(name, ())
        if not known:
            raise OptionError(f"--vary {name}: say which values, --vary {name}=VALUE,VALUE")
        return name, list(known)
    return name, [_parsed(name, word.strip()) for word in given.split(",")]


def points(
    models: Iterable[str], chips: Iterable[str], vary: Mapping[str, Sequence[Value]], base: BuildOptions,
    inputs: IoConfig | None = None,
) -> list[Point]:
    """All points, the last name varied first.

    Raises:
        NeuronError: a model's file or a chip is not there, a name does not exist, or has no such value.
    """
    for name, values in vary.items():
        _check(name, values)
    found = []
    for model in dict.fromkeys(map(str, models)):
        if not Path(model).is_file():
            raise ModelError(f"{model}: no such file")
        content = fingerprint({}, model_files(Path(model)))
        for chip in dict.fromkeys(chips):
            device = load_device(chip)
            for values in product(*(dict.fromkeys(each) for each in vary.values())):
                choice = dict(zip(vary, values, strict=True))
                found.append(_point(model, content, chip, device, base, choice, inputs or IoConfig()))
    return found


def _point(
    model: str, content: str, chip: str, device: Device, base: BuildOptions, choice: dict[str, Value], inputs: IoConfig
) -> Point:
    numbers: dict[str, Any] = {name: value for name, value in choice.items() if name in Device.numbers()}
    chosen: dict[str, Any] = {name: value for name, value in choice.items() if name in OPTIONS}
    shares: dict[str, Any] = {name: value for name, value in choice.items() if name in CANDIDATES}
    sources = {**device.sources, **dict.fromkeys(numbers, "varied by a sweep")}
    varied = replace(device, **numbers, sources=sources)
    options = replace(base, **chosen, tuning=replace(base.tuning, **shares) if shares else base.tuning)
    if options.instance:
        load_instance(options.instance, varied)
    wishes = {"model": content, "inputs": inputs.to_json(), "device": device_to_dict(varied), BATCH: choice.get(BATCH)}
    options_key = {name: value for name, value in options.to_dict().items() if name != "device"}
    return Point(model, chip, choice, varied, options, inputs, fingerprint(wishes | {"options": options_key}, []))


def _types(name: str) -> tuple[type, ...]:
    """What values of a name may be.

    Raises:
        OptionError: there is no such name.
    """
    if name == BATCH or name in CANDIDATES or name in Device.numbers():
        return (int,)
    if name in OPTIONS:
        return OPTIONS[name]
    raise OptionError(
        f"there is no choice '{name}' to vary; there are {BATCH}; of compiling {', '.join(OPTIONS)}; of how SBUF is "
        f"shared out {', '.join(CANDIDATES)}; of the chip {', '.join(Device.numbers())}"
    )


def _parsed(name: str, word: str) -> Value:
    for kind in _types(name):
        if kind in (bool, NoneType):
            if word.lower() in _WORDS and type(_WORDS[word.lower()]) is kind:
                return _WORDS[word.lower()]
        else:
            with suppress(ValueError):
                return kind(word)
    raise _wrong(name, word)


def _check(name: str, values: Sequence[Value]) -> None:
    types = _types(name)
    if isinstance(values, str) or not values:
        raise OptionError(f"{name} to vary is {values!r}: give a list of values, one at least")
    for value in values:
        if type(value) not in types and not (type(value) is int and float in types):
            raise _wrong(name, value)
        if name == BATCH and isinstance(value, int) and value < 1:
            raise OptionError(f"{BATCH} to vary is {value}: it must be at least 1")


def _wrong(name: str, value: Value) -> OptionError:
    needed = " or ".join(_NAMES[kind] for kind in _types(name))
    return OptionError(f"{name} to vary is {value!r}: it must be {needed}")
