"""A contraction that is made again from its record gives what it would give anew, and none is kept that may not."""

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from tvm_neuron.isa import contract as module
from tvm_neuron.isa import recorded, scratch
from tvm_neuron.isa.contract import contract

LEAD = (3, 2)  # a summed loop, and one that both operands follow


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a contraction was made anew."""
    calls: list[int] = []
    make = module._contract

    def count(*operands: np.ndarray, **options: object) -> tuple[np.ndarray, np.ndarray]:
        calls.append(1)
        return make(*operands, **options)

    monkeypatch.setattr(module, "_contract", count)
    recorded._RECORDED.__dict__.clear()
    return calls


def operands(dtype: type = ml_dtypes.bfloat16, columns: int = 300) -> tuple[np.ndarray, np.ndarray]:
    stationary, moving = np.empty((*LEAD, 16, 8), dtype), np.empty((*LEAD, 16, columns), dtype)
    return stationary, moving


def fill(arrays: tuple[np.ndarray, ...], seed: int) -> np.ndarray:
    """Puts other values where the arrays lie; gives the contraction of copies, which lie elsewhere."""
    random = np.random.default_rng(seed)
    for array in arrays:
        array[...] = random.standard_normal(array.shape)
    return contract(*(array.copy() for array in arrays), (0,))


@pytest.mark.parametrize("columns", [1, 7, 300, 4000])
def test_other_values_in_the_same_place(made: list[int], columns: int) -> None:
    arrays = operands(columns=columns)
    fill(arrays, 0)  # rooms are as large as they get
    for seed in range(3):
        wanted = fill(arrays, seed)
        made.clear()
        found = contract(*arrays, (0,))
        assert found.tobytes() == wanted.tobytes()
        assert made == ([1] if seed == 0 else [])


def test_rooms_that_grow_while_it_is_made(made: list[int]) -> None:
    """The second operand needs more of a room than the first had: what was recorded of that one is of freed memory."""

    def contracted() -> tuple[np.ndarray, int]:
        made.clear()
        return contract(*arrays, (0,)), len(made)

    arrays = tuple(array[..., ::2] for array in operands())
    wanted = fill(arrays, 0)
    with ThreadPoolExecutor(1) as thread:  # one without rooms
        found = [thread.submit(contracted).result() for _ in range(3)]
    assert [times for _, times in found] == [1, 1, 0]
    assert all(result.tobytes() == wanted.tobytes() for result, _ in found)


def test_every_result_has_memory_of_its_own(made: list[int]) -> None:
    arrays = operands()
    results = []
    for seed in range(3):
        wanted = fill(arrays, seed)
        results.append((contract(*arrays, (0,)), wanted))
    assert all(found.tobytes() == wanted.tobytes() for found, wanted in results)


def test_steps_over_columns_share_one_room(made: list[int]) -> None:
    stationary, wide = operands(columns=9000)
    moving = wide[..., ::3]
    for seed in range(3):
        fill((stationary, wide), seed)
        wanted = contract(stationary.copy(), moving.copy(), (0,))
        assert contract(stationary, moving, (0,)).tobytes() == wanted.tobytes()


def test_it_is_made_anew_once_a_room_has_moved(made: list[int]) -> None:
    arrays = operands()
    fill(arrays, 0)
    contract(*arrays, (0,))
    scratch.scratch("moving", scratch.scratch("moving", 1).base.size + 1)  # type: ignore[union-attr]
    wanted = fill(arrays, 1)
    made.clear()
    assert contract(*arrays, (0,)).tobytes() == wanted.tobytes()
    assert made == [1]


def test_what_numpy_does_is_not_kept(made: list[int]) -> None:
    arrays = operands(np.float16)
    for seed in range(2):
        wanted = fill(arrays, seed)
        made.clear()
        assert contract(*arrays, (0,)).tobytes() == wanted.tobytes()
        assert made == [1]


def test_a_limited_number_is_kept(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_MOST", 2)
    kept = [operands() for _ in range(3)]
    for arrays in kept:
        fill(arrays, 0)
        contract(*arrays, (0,))
    assert 1 <= len(recorded._RECORDED.found) <= 2
