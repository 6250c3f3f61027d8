"""Request: what a compile is asked for, but for the model; as plain values and back, trusting nothing."""

from dataclasses import dataclass
from typing import Any

from tvm_neuron.bundle.io_config import IoConfig
from tvm_neuron.bundle.typed import typed, typed_fields
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import DeviceError, OptionError
from tvm_neuron.hw import Device
from tvm_neuron.hw.load import device_from_dict, device_to_dict

SUFFIXES = (".neff", ".so")
_KEYS = ("suffix", "compress", "inputs", "options", "device")


@dataclass(frozen=True, kw_only=True)
class Request:
    """`inputs` are those of the model as it is, and of each bucket; `device` is the one that `options` names."""

    suffix: str  # one of SUFFIXES
    compress: bool
    inputs: tuple[IoConfig, ...]
    options: BuildOptions
    device: Device

    def to_dict(self) -> dict[str, Any]:
        """Plain values. The device's own stand for its name, which may be the path of a file."""
        options = self.options.to_dict()
        del options["device"]
        return {
            "suffix": self.suffix,
            "compress": self.compress,
            "inputs": [each.to_json() for each in self.inputs],
            "options": options,
            "device": device_to_dict(self.device),
        }

    @classmethod
    def from_dict(cls, raw: Any) -> "Request":
        """The inverse of `to_dict`; its `options` name no device.

        Raises:
            ValueError: it is of another form, or has values that no compile may have.
        """
        if not isinstance(raw, dict) or set(raw) != set(_KEYS):
            raise ValueError(f"its request must be an object with the keys {', '.join(_KEYS)}")
        if raw["suffix"] not in SUFFIXES or not isinstance(raw["inputs"], list) or not raw["inputs"]:
            raise ValueError(f"its request must have a suffix of {', '.join(SUFFIXES)} and a list of inputs")
        names = BuildOptions().to_dict().keys() - {"device"}
        try:
            return cls(
                suffix=raw["suffix"],
                compress=typed(raw["compress"], bool, "compress"),
                inputs=tuple(IoConfig() if each is None else IoConfig.from_json(each) for each in raw["inputs"]),
                options=BuildOptions(**typed_fields(raw["options"], BuildOptions, names, "options")),
                device=device_from_dict(raw["device"], "of the bundle"),
            )
        except (OptionError, DeviceError) as error:
            raise ValueError(str(error)) from error
