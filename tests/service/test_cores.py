"""Which cores a process may use, and their groups, by the original runtime's environment variables."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.errors import ServiceError
from tvm_neuron.runtime.service import Group, Service, make_groups, most_requests, visible_cores


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"NEURON_RT_NUM_CORES": "2"}, (0, 1)),
        ({"NEURON_RT_NUM_CORES": "0"}, (0, 1, 2, 3)),
        ({"NEURON_RT_VISIBLE_CORES": "1-3"}, (1, 2, 3)),
        ({"NEURON_RT_VISIBLE_CORES": "3, 0-1", "NEURON_RT_NUM_CORES": "1"}, (3, 0, 1)),
    ],
)
def test_visible_cores(environment: dict[str, str], expected: tuple[int, ...]) -> None:
    assert visible_cores(4, environment) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", [(0, 1, 2, 3, 4, 5)]), ("2,4", [(0, 1), (2, 3, 4, 5)]), ("3x1,2", [(0,), (1,), (2,), (3, 4)])],
)
def test_groups(text: str, expected: list[tuple[int, ...]]) -> None:
    groups = make_groups(tuple(range(6)), {"NEURONCORE_GROUP_SIZES": text})
    assert [group.cores for group in groups] == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("", 7), ("0", 1), ("-5", 5), ("12", 12)]
)  # 4 cores and 3 more where nothing is said
def test_most_requests(text: str, expected: int) -> None:
    assert most_requests(4, {"NEURON_MAX_NUM_INFERS": text}) == expected


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("NEURON_RT_VISIBLE_CORES", "2-4", r"has '2-4': the instance has the NeuronCores 0 to 3"),
        ("NEURON_RT_VISIBLE_CORES", "a", r"NEURON_RT_VISIBLE_CORES: 'a' is no whole number"),
        ("NEURON_RT_NUM_CORES", "5", r"NEURON_RT_NUM_CORES is 5: the instance has 4; ask for 0 \(all\) to 4"),
        ("NEURONCORE_GROUP_SIZES", "3,2", r"'3,2' needs 5 NeuronCores; 4 are visible: make the groups smaller"),
        ("NEURONCORE_GROUP_SIZES", "2x0", r"'2x0' is no group; write sizes as '2,4' or '4x1'"),
        ("NEURON_MAX_NUM_INFERS", "many", r"NEURON_MAX_NUM_INFERS: 'many' is no whole number"),
    ],
)
def test_what_is_refused(variable: str, text: str, message: str, library: Path) -> None:
    with pytest.raises(ServiceError, match=message):
        Service(4, {variable: text}).load(library)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=20))
def test_no_core_is_given_twice(steps: list[tuple[bool, int]]) -> None:
    group, taken = Group(tuple(range(8))), list[tuple[int, ...]]()
    for takes, count in steps:
        if takes:
            cores = group.take(count)
            assert (cores is None) == (8 - sum(map(len, taken)) < count)
            taken += [cores] if cores else []
        elif taken:
            group.release(taken.pop(0))
        every = [core for cores in taken for core in cores]
        assert len(every) == len(set(every))
        assert set(every) == group.used
