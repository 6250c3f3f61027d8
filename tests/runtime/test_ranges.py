"""Numbers computed at run time by which the CPU parts address memory."""

import numpy as np
import pytest
import tvm
import tvm_ffi

import tvm_neuron  # noqa: F401  registers what is tested
from tvm_neuron.errors import PositionError


def checked(name: str, given: np.ndarray, *told: object) -> np.ndarray:
    return tvm_ffi.get_global_func(f"tvm_neuron.runtime.{name}")(tvm.runtime.tensor(given), *told).numpy()


def test_numbers_in_range_stay_as_they_are() -> None:
    given = np.int32([[0, 4], [-7, 2]])
    found = checked("checked_range", given, tvm_ffi.Shape([0, 5, -7]), "NllLoss 'n'", "label")
    np.testing.assert_array_equal(found, given)
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(checked("checked_steps", np.int64([2, -1]), "Slice 's'"), [2, -1])
    regions = np.float32([[0, 1.5, -3, 4, 5], [1, 0, 0, 1e9, 1]])
    np.testing.assert_array_equal(checked("checked_regions", regions, tvm_ffi.Shape([2]), "RoiAlign 'r'"), regions)


@pytest.mark.parametrize("number", [-1, 5, 2**40])
def test_a_number_out_of_range(number: int) -> None:
    with pytest.raises(PositionError, match=f"ReverseSequence 'r': length {number} is out of range: .* from 0 to 4$"):
        checked("checked_range", np.array([0, number]), tvm_ffi.Shape([0, 5]), "ReverseSequence 'r'", "length")
    with pytest.raises(PositionError, match=f"label {number} is out of range: it must be from 0 to 4 or -9"):
        checked("checked_range", np.array([-9, number]), tvm_ffi.Shape([0, 5, -9]), "NllLoss 'n'", "label")


def test_a_step_of_0() -> None:
    with pytest.raises(PositionError, match="Slice 's': step 0 goes nowhere"):
        checked("checked_steps", np.int64([1, 0]), "Slice 's'")


@pytest.mark.parametrize("image", [-1.0, 2.0, np.nan])
def test_a_region_of_no_image(image: float) -> None:
    with pytest.raises(PositionError, match=f"RoiAlign 'r': batch index {image:.0f} .* it must be from 0 to 1"):
        checked("checked_regions", np.float32([[image, 0, 0, 1, 1]]), tvm_ffi.Shape([2]), "RoiAlign 'r'")


def test_a_region_without_end() -> None:
    regions = np.float32([[0, 0, 0, 1, 1], [0, 0, 0, np.inf, 1]])
    with pytest.raises(PositionError, match=r"region 1 is \[0.0, 0.0, inf, 1.0\]: its coordinates must be finite"):
        checked("checked_regions", regions, tvm_ffi.Shape([2]), "RoiAlign 'r'")


def test_divisors() -> None:
    numbers = np.int8([-128, 7, 5])
    dividends = tvm.runtime.tensor(numbers)
    np.testing.assert_array_equal(checked("checked_divisors", np.int8([3, -2, 1]), dividends, "Div 'd'"), [3, -2, 1])
    with pytest.raises(PositionError, match="Div 'd': a divisor is 0"):
        checked("checked_divisors", np.int8([3, 0, 1]), dividends, "Div 'd'")
    with pytest.raises(PositionError, match="Div 'd': a divisor is -1 beside the dividend -128"):
        checked("checked_divisors", np.int8([3, 2, -1]), dividends, "Div 'd'")
    assert checked("checked_divisors", np.int8([-1]), tvm.runtime.tensor(numbers[1:]), "Div 'd'") == -1
    assert checked("checked_divisors", np.uint8([255]), tvm.runtime.tensor(np.uint8([0])), "Div 'd'") == 255
