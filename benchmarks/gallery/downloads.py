"""What scripts download: local files of the same architecture and shapes, with random weights from a fixed seed."""

import tarfile
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_CLASSES = 1001


def install(source: str) -> None:
    """`download_testdata` makes files; torchvision's networks keep the random weights that they were made with."""
    import tvm.contrib.download

    tvm.contrib.download.download_testdata = made
    if "torchvision" in source and find_spec("torch"):
        keep_random_weights()


def made(url: str, relpath: str, module: Any = None, overwrite: bool = False) -> str:
    """The path of the file that stands in for what `url` has."""
    del url, module, overwrite
    path = Path(tempfile.mkdtemp(), Path(relpath).name)
    maker = next((each for part, each in _MAKERS.items() if part in path.name), None)
    if maker is None:
        raise FileNotFoundError(f"there is no local stand-in for the download {path.name}")
    maker(path)
    return str(path)


def keep_random_weights() -> None:
    """Networks of torchvision that ask for trained weights keep those that they were made with."""
    import torch

    from benchmarks.catalogue.packages import torchvision

    torchvision()
    from torchvision.models._api import WeightsEnum

    load = torch.nn.Module.load_state_dict

    def kept(module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if state is not None:
            return load(module, state, *args, **kwargs)
        for name, part in module.named_modules():
            if isinstance(part, torch.nn.Conv2d):  # as made, depthwise ones take all but nothing of their input
                torch.nn.init.kaiming_normal_(part.weight)
            if name.endswith("bn3"):  # sixteen such are added up
                torch.nn.init.constant_(part.weight, 0.2)
            if name.endswith("cls_score"):  # as made, a detector sees all classes alike, which is nothing
                torch.nn.init.normal_(part.weight, std=0.05)
            if name.endswith("bbox_pred"):  # as made, boxes lie outside of images with numbers up to 255
                torch.nn.init.normal_(part.weight, std=5e-5)
        return None

    torch.nn.Module.load_state_dict = kept
    torch.manual_seed(0)
    WeightsEnum.get_state_dict = lambda *args, **kwargs: None


def _image(path: Path) -> None:
    """Smooth random colours: noise alone would make all classes alike."""
    from PIL import Image

    rng = np.random.default_rng(1)
    small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    small.resize((640, 480), Image.Resampling.BICUBIC).save(path)


def _labels(path: Path) -> None:
    path.write_text("".join(f"class{number}\n" for number in range(_CLASSES)))


def _synsets(path: Path) -> None:
    path.write_text("".join(f"n{number:08} class {number}\n" for number in range(_CLASSES)))


def _synset_keys(path: Path) -> None:
    path.write_text("".join(f"n{number:08}\n" for number in range(_CLASSES)))


def _synset_dictionary(path: Path) -> None:
    path.write_text(repr({number: f"class {number}" for number in range(_CLASSES)}))


def super_resolution() -> onnx.ModelProto:
    """Four convolutions and the shuffle that makes an image three times as large, of a batch of one."""
    rng = np.random.default_rng(2)
    shapes = [(64, 1, 5, 5), (64, 64, 3, 3), (32, 64, 3, 3), (9, 32, 3, 3)]
    nodes, weights, last = [], [], "1"
    for number, shape in enumerate(shapes):
        scale = np.sqrt(2 / np.prod(shape[1:]))
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) * scale).astype("float32"), f"w{number}"))
        weights.append(numpy_helper.from_array(rng.standard_normal(shape[0]).astype("float32"), f"b{number}"))
        pads = [shape[2] // 2] * 4
        nodes.append(helper.make_node("Conv", [last, f"w{number}", f"b{number}"], [f"c{number}"], pads=pads))
        last = f"c{number}"
        if number < len(shapes) - 1:
            nodes.append(helper.make_node("Relu", [last], [f"r{number}"]))
            last = f"r{number}"
    for name, value in (("split", [1, 1, 3, 3, 224, 224]), ("joined", [1, 1, 672, 672])):
        weights.append(numpy_helper.from_array(np.array(value), name))
    nodes += [
        helper.make_node("Reshape", [last, "split"], ["blocks"]),
        helper.make_node("Transpose", ["blocks"], ["turned"], perm=[0, 1, 4, 2, 5, 3]),
        helper.make_node("Reshape", ["turned", "joined"], ["27"]),
    ]
    image, larger = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 1, size, size])
        for name, size in (("1", 224), ("27", 672))
    )
    graph = helper.make_graph(nodes, "super_resolution", [image], [larger], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def resnet50_onnx() -> onnx.ModelProto:
    """ResNet-50 with its input named `data`, as the model zoo's."""
    from tvm_neuron.frontend.sample_models import light_network

    model = light_network("resnet50")
    old = model.graph.input[0].name
    for node in model.graph.node:
        node.input[:] = ["data" if name == old else name for name in node.input]
    model.graph.input[0].name = "data"
    return model


def _gcn(path: Path) -> None:
    import torch

    from benchmarks.gallery.graphs import CLASSES, FEATURES, HIDDEN

    rng = torch.Generator().manual_seed(3)
    sizes = ((FEATURES, HIDDEN), (HIDDEN, CLASSES))
    state = {}
    for number, size in enumerate(sizes):
        state[f"layers.{number}.weight"] = torch.randn(size, generator=rng) * (2 / size[0]) ** 0.5
        state[f"layers.{number}.bias"] = torch.randn(size[1], generator=rng)
    torch.save(state, path)


def _mobilenet(path: Path) -> None:
    from benchmarks.gallery.tflite_models import mobilenet_v1

    _archive(path, "mobilenet_v1_1.0_224.tflite", mobilenet_v1())


def _quantised_mobilenet(path: Path) -> None:
    from benchmarks.gallery.tflite_models import mobilenet_v2_quantised

    _archive(path, "mobilenet_v2_1.0_224_quant.tflite", mobilenet_v2_quantised())


def _coreml_mobilenet(path: Path) -> None:
    from benchmarks.gallery.coreml_models import mobilenet

    path.write_bytes(mobilenet())


def _archive(path: Path, name: str, content: bytes) -> None:
    file = path.with_name(name)
    file.write_bytes(content)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(file, name)


def _keras_resnet50(path: Path) -> None:
    import keras

    keras.utils.set_random_seed(5)
    keras.applications.ResNet50(weights=None).save(path)


_MAKERS: dict[str, Callable[[Path], None]] = {
    "super_resolution.onnx": lambda path: onnx.save(super_resolution(), path),
    ".png": _image,
    ".jpg": _image,
    "imagenet_synsets.txt": _synsets,
    "imagenet_classes.txt": _synset_keys,
    "imagenet1000_clsid_to_human.txt": _synset_dictionary,
    "synset.txt": _synsets,
    "labels_mobilenet_quant_v1_224.txt": _labels,
    "gcn_cora": _gcn,
    "mobilenet_v1_1.0_224.tgz": _mobilenet,
    "mobilenet_v2_1.0_224_quant.tgz": _quantised_mobilenet,
    "mobilenet.mlmodel": _coreml_mobilenet,
    "resnet50_keras": _keras_resnet50,
}
"""By a part of the file's name."""
