"""The random models' own tests: bounds that honest rounding keeps and a wrong element doesn't, and the shrinking."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.models.rounding import emulate_bfloat16
from tests.random_models import judge
from tests.random_models.evaluate import UnfitError, session_options
from tests.random_models.growth import Growth
from tests.random_models.judge import Outcome, tolerance, wrong
from tests.random_models.model import RandomModel, random_model
from tests.random_models.shrink import shrunk
from tvm_neuron.errors import InternalError

SEEDS = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)  # onnxruntime has no kernel for what seed 5 draws


def run(proto: onnx.ModelProto, model: RandomModel) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(proto.SerializeToString(), session_options()).run(None, model.feeds())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_whole_model_gives_what_its_nodes_gave(seed: int) -> None:
    model = random_model(seed)
    onnx.checker.check_model(model.proto(), full_check=True)
    for name, array in zip(model.outputs, run(model.proto(), model), strict=True):
        assert not wrong(model, name, array)  # float16 is not rounded between operators that onnxruntime casts


@pytest.mark.slow
def test_rounding_at_other_places_stays_within_the_bounds() -> None:
    models = [model for model in map(random_model, range(25)) if model.mode == "all"]
    for model in (model for model in models if not {"Resize", "GridSample", "DequantizeLinear"} & set(_kinds(model))):
        for name, array in zip(model.outputs, run(emulate_bfloat16(model.proto()), model), strict=True):
            assert model.values[name].is_constant or not wrong(model, name, array)  # it rounds constants as well


def test_one_element_off_is_found() -> None:
    """By 15 %, where rounding explains no more than a tenth of the usual size; or by one, where nothing is rounded."""
    rng = np.random.default_rng(0)
    found = []
    for model in (random_model(seed) for seed in range(25)):
        for name in model.outputs:
            array = model.values[name].exact.copy()
            place = tuple(int(rng.integers(extent)) for extent in array.shape)
            if array.dtype.kind == "f":
                size = np.sqrt(np.mean(array.astype(np.float64) ** 2))
                array[place] += np.array(0.15 * size + 1e-3, array.dtype)
            else:
                array[place] = not array[place] if array.dtype == bool else array[place] ^ 1
            found.append(bool(wrong(model, name, array)))
    assert np.mean(found) > 0.95


def test_rounding_that_makes_numbers_equal_is_allowed() -> None:
    """No sample need be equal, but a sum kept in bfloat16 often is."""
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.append(np.linspace(0.1, 1, 40), 2.7505).astype(np.float32))
    samples = g.add("Equal", x, g.constant(np.append(np.zeros(40), 2.75).astype(np.float32))).samples
    assert samples is not None
    assert samples[:, -1].any()
    assert not samples[:, :-1].any()


def test_a_copy_may_be_kept_narrower_than_its_operand() -> None:
    """`-x + x` where the PE array reads the negated copy in bfloat16 and engines read x in float32: only rounding."""
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.linspace(0.1, 1, 40, dtype=np.float32))
    with pytest.raises(UnfitError, match="ill-conditioned"):
        g.add("Add", g.add("Neg", x), x)


def test_sums_in_a_log_softmax_may_read_a_narrower_copy() -> None:
    """Of one number far above the others the result is nought, but for the distance of 9.27 from bfloat16."""
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.array([[9.27, -5.5, -6.25], [1, 2, 3]], np.float32))
    found = g.add("LogSoftmax", x)
    assert abs(found.exact[0, 0]) < 1e-5
    assert tolerance(found, "all")[0, 0] > 2.0**-9 * 9.27


@pytest.mark.parametrize(
    ("mode", "largest", "is_exact"), [("all", 769, False), ("all", 200, True), ("none", 769, True)]
)
def test_products_read_whole_numbers_of_so_many_digits(mode: str, largest: int, is_exact: bool) -> None:
    """Of 769 bfloat16 keeps 768; engines keep it, and so do products in float32."""
    g = Growth(np.random.default_rng(0), "float32", 18, mode)
    x = g.add("Cast", g.input(np.array([[1, largest, 3]], np.int32)), to=1)
    assert tolerance(x, mode).max() == 0
    found = g.add("CumSum", x, g.constant(np.array(1)))
    assert (tolerance(found, mode)[0, 1] == 0) == is_exact
    assert tolerance(found, mode)[0, 1] < 60


def test_a_bend_allows_what_both_sides_do() -> None:
    """Below nought the slope is 0.01, but rounding may lead above it."""
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.array([*np.linspace(-300, 300, 30), -0.001], np.float32))
    x = g.add("Sub", g.add("Add", x, g.constant(np.float32(333.3))), g.constant(np.float32(333.3)))
    assert tolerance(g.add("LeakyRelu", x), "all")[-1] > 1


def test_what_leaves_the_dtype_is_not_drawn() -> None:
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.array([2**20], np.int32))
    with pytest.raises(UnfitError, match="32 bits"):
        g.add("Mul", x, x)


@pytest.mark.parametrize(("largest", "is_drawn"), [(2.0, True), (1e30, False)])
def test_products_with_0_have_no_order_that_overflows(largest: float, is_drawn: bool) -> None:
    """1e30 * 1e30 * 0 is NaN, and 0 * 1e30 * 1e30 is 0."""
    g = Growth(np.random.default_rng(0), "float32", 18, "all")
    x = g.input(np.array([largest, largest, 0], np.float32))
    if is_drawn:
        assert g.add("ReduceProd", x, keepdims=0).exact == 0
    else:
        with pytest.raises(UnfitError, match="not finite"):
            g.add("ReduceProd", x, keepdims=0)


@pytest.mark.slow
def test_bounds_follow_the_precision() -> None:
    """Of the same model, float32 leaves a thousandth of the room that bfloat16 leaves."""
    for seed in range(25):
        model = random_model(seed)
        value = model.values[model.outputs[0]]
        if model.mode == "none" and value.dtype == "float32" and value.samples is not None:
            size = np.abs(value.exact).max()
            assert np.median(tolerance(value, "none")) < 1e-3 * size


def test_other_dtypes_and_shapes_are_wrong() -> None:
    model = random_model(0)
    name = model.outputs[0]
    exact = model.values[name].exact
    assert "not" in wrong(model, name, exact.astype(np.complex64))
    assert "not" in wrong(model, name, exact[None])
    assert not wrong(model, name, exact)


def test_what_fails_becomes_small() -> None:
    model = next(m for m in map(random_model, range(50)) if len(m.nodes) > 12 and "MatMul" in _kinds(m))
    small = shrunk(model, lambda candidate: "MatMul" in _kinds(candidate))
    assert _kinds(small) == ["MatMul"]
    run(small.proto(), small)


def _kinds(model: RandomModel) -> list[str]:
    return [node.op_type for node in model.nodes]


def test_a_defect_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise InternalError("tile 7 of 'n_conv3' is gone")

    monkeypatch.setattr(judge.relay, "build", fail)
    outcome = judge.judge(random_model(1), "inf1")
    assert outcome.result == "internal"
    assert outcome.group.startswith("InternalError: tile N of '...' is gone")
    assert outcome.group == replace(outcome, reason=outcome.reason.replace("7", "12")).group


def test_a_wrong_result_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(2)
    name = model.outputs[0]
    values = dict(model.values) | {name: replace(model.values[name], exact=model.values[name].exact + 1, samples=None)}
    assert judge.judge(model, "inf2") == replace(judge.judge(model, "inf2"), result="passed", reason="")
    assert judge.judge(replace(model, values=values), "inf2").result == "wrong"


def test_groups_of_outcomes() -> None:
    assert Outcome("internal", "no tile 3.5e-4", "a.py:f").group == "no tile N @ a.py:f"
