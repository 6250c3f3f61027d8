"""What tensors take between steps, by lists of who is there, is what their lives say one by one."""

from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.codegen.tiles.usage import NEAR, Usage
from tvm_neuron.schedule.tensor import Tensor

_STEPS = 40
_TOUCHES = st.sets(st.integers(0, _STEPS - 1), min_size=1, max_size=4).map(sorted)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Of tensors that kernels touch at some of forty steps."""
    touched = {Tensor(f"t{n}", (1,), "float32"): steps for n, steps in enumerate(draw(st.lists(_TOUCHES, max_size=12)))}
    sizes = {tensor: draw(st.integers(0, 9)) for tensor in touched}
    life = {tensor: (steps[0], steps[-1]) for tensor, steps in touched.items()}
    crossing = [sum(sizes[t] for t, (begin, end) in life.items() if begin < s <= end) for s in range(_STEPS + 1)]
    return Usage([0] * _STEPS, crossing, life, sizes, touched)


@given(usages())
def test_across(now: Usage) -> None:
    assert [sum(now.sizes[tensor] for tensor in tensors) for tensors in now.across] == now.crossing


@given(usages(), st.integers(0, _STEPS - 1), st.integers(1, _STEPS), st.booleans())
def test_least_with_tiles(now: Usage, first: int, count: int, is_first_in_dram: bool) -> None:
    """All that begins before the tiles or is there after them, but what only comes before or after them."""
    end = min(first + count, _STEPS)
    in_dram = set([*now.sizes][: int(is_first_in_dram)])
    least = 0
    for tensor, (begin, last) in now.life.items():
        is_inside = first <= begin and last < end
        if begin < end and last >= first and not is_inside and tensor not in in_dram:
            least += now.sizes[tensor]
    assert now.least_with_tiles(first, end, in_dram) == least


@given(usages(), st.integers(0, _STEPS - 1), st.integers(0, _STEPS), st.integers(NEAR, 20))
def test_idle(now: Usage, first: int, count: int, near: int) -> None:
    last = min(first + count, _STEPS)
    found = now.idle(first, last, near)
    assert [*found] == [*range(first, last + 1)]
    for step, tensors in found.items():
        idle = {
            tensor
            for tensor, steps in now.touched.items()
            if now.sizes[tensor] and steps[0] < step and not {*range(step, step + near)} & {*steps}
            if steps[-1] >= step + near
        }
        assert {*tensors} == idle
        assert [now.sizes[tensor] for tensor in tensors] == sorted((now.sizes[t] for t in tensors), reverse=True)
