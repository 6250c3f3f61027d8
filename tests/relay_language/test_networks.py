"""relay.testing: the networks have the weights of TVM 0.18's, and give on the core what TVM's own kernels give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.relay import testing
from tvm_neuron.relay.lower import to_relax

NETWORKS: dict[str, tuple[Callable[[], Any], int, str]] = {
    "mlp": (lambda: testing.mlp.get_workload(2), 6, "fc3_bias"),
    "dqn": (lambda: testing.dqn.get_workload(1), 10, "conv3_weight"),
    "resnet": (lambda: testing.resnet.get_workload(1, 10, 8, (3, 28, 28)), 44, "stage3_unit1_sc_weight"),
    "resnet bottleneck": (lambda: testing.resnet.get_workload(1, 10, 50, (3, 33, 33)), 259, "stage4_unit3_bn3_gamma"),
    "resnet nhwc": (lambda: testing.resnet.get_workload(1, 10, 8, (28, 28, 3), layout="NHWC"), 44, "conv0_weight"),
    "resnet_3d": (lambda: testing.resnet_3d.get_workload(1, 10, 8, (3, 4, 16, 16)), 44, "bn_data_beta"),
    "mobilenet": (lambda: testing.mobilenet.get_workload(1, 10, (3, 32, 32)), 137, "separable_conv_block_13_bn2_beta"),
    "squeezenet": (lambda: testing.squeezenet.get_workload(1, 10, "1.1", (3, 48, 48)), 52, "fire8_left_conv_bias"),
    "vgg": (lambda: testing.vgg.get_workload(1, 10, (3, 32, 32), batch_norm=True), 54, "bn5_2_moving_var"),
    "densenet": (lambda: testing.densenet.get_workload(121, 10, 1), 606, "conv2d_2_3_15_weight"),
    "inception_v3": (lambda: testing.inception_v3.get_workload(1, 10), 472, "mixed_10_tower_1_mixed_conv_1_bn_beta"),
    "dcgan": (lambda: testing.dcgan.get_workload(1, ngf=8), 17, "g4_batch_norm_gamma"),
    "lstm": (lambda: testing.lstm.get_workload(3, 8), 12, "h2h_2_bias"),
}

SLOW = ("densenet", "inception_v3", "resnet bottleneck", "resnet nhwc", "mobilenet", "resnet_3d", "squeezenet", "vgg")
LARGEST = "inception_v3"  # which tests/models has from ONNX


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.many if name == LARGEST else pytest.mark.slow if name in SLOW else ())
        for name in NETWORKS
    ],
)
def test_it_agrees_with_tvm_in_float32(name: str) -> None:
    make, count, weight = NETWORKS[name]
    mod, params = make()
    assert (len(params), weight in params) == (count, True)
    rng = np.random.default_rng(5)
    lowered = to_relax(mod)
    inputs = {
        var.name: rng.standard_normal([int(dim) for dim in var.ty.shape]).astype("float32")
        for var in lowered["main"].params
        if var.name not in params
    }
    library = relay.build(mod, target="neuron/inf2", params=params)
    report = tvm_neuron.report(library)
    assert not report.placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    exact = _by_tvm(lowered, inputs | {key: value.numpy() for key, value in params.items()})
    error = np.linalg.norm(executor.get_output(0).numpy() - exact) / np.linalg.norm(exact)
    # bf16 rounds at every layer by up to 2**-9 of the value; errors of 50 layers add up as a random walk does
    assert error < 50**0.5 * 2.0**-8


def _by_tvm(mod: tvm.IRModule, values: dict[str, np.ndarray]) -> np.ndarray:
    with tvm.target.Target("llvm"):
        machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    result = machine["main"](*(tvm.runtime.tensor(values[var.name]) for var in mod["main"].params))
    return result.numpy() if hasattr(result, "numpy") else result[0].numpy()


def test_weights_are_the_same_in_every_process_and_differ_by_seed() -> None:
    one, again, other = (
        testing.create_workload(testing.mlp.get_net(1), seed=seed)[1]["fc1_weight"].numpy() for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert abs(one - other).max() > 0
    # NumPy's generators give the same numbers everywhere
    assert one[0, :3].tolist() == pytest.approx([-0.038358543, 0.011786607, 0.050234150], rel=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: testing.resnet.get_net(1, 10, 51), "num_layers is 51; there are 18, 34, 50, 101, 152, 200, 269"),
        (lambda: testing.resnet.get_net(1, 10, 9, (3, 28, 28)), "num_layers is 9; for images this small"),
        (lambda: testing.squeezenet.get_net(1, (3, 48, 48), 10, "2", "float32"), "version is '2'; there are 1.0, 1.1"),
        (lambda: testing.vgg.get_net(1, (3, 48, 48), 10, "float32", 12), "num_layers is 12; there are 11, 13, 16, 19"),
        (lambda: testing.densenet.get_net(120, 10, 1, (3, 9, 9), "float32"), "densenet_size is 120; there are 121"),
        (lambda: testing.dcgan.get_net(1, oshape=(3, 32, 32)), "images are 64 x 64"),
        (lambda: testing.layers.conv_kernel_layout("CHWN"), "data_layout is 'CHWN'; there are NCHW, NHWC"),
    ],
)
def test_what_there_is_not(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
