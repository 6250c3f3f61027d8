"""writers_of, readers_of, users_of: of kernels whose loads are written down here, who uses which tensor."""

from tvm_neuron.schedule.expr import Apply, Axis, Load, Num
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, users_of, writers_of

x, y, z = (Tensor(name, (4,), "float32") for name in "xyz")


def kernel(out: Tensor, *sources: Tensor) -> Kernel:
    channel = Axis("c", 4)
    there = Linear(0, {channel: 1})
    expr = Apply("add", tuple(Load(tensor, (there.expr(),)) for tensor in sources)) if sources else Num(1.0)
    return Kernel((), out, (there,), channel, (), expr)


filled, doubled, summed, again = kernel(y), kernel(y, x, x), kernel(z, x, y), kernel(z, z)
every = [filled, doubled, summed, again]


def test_writers_come_in_order_and_what_none_writes_is_not_there() -> None:
    assert writers_of(every) == {y: [filled, doubled], z: [summed, again]}


def test_who_reads_a_tensor_twice_is_one_reader() -> None:
    assert readers_of(every) == {x: [doubled, summed], y: [summed], z: [again]}


def test_who_reads_and_writes_a_tensor_uses_it_once() -> None:
    assert users_of(every) == {y: [filled, doubled, summed], x: [doubled, summed], z: [summed, again]}
