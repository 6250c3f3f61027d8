"""Jobs in processes of Ray: a worker that dies takes nothing with it, wherever the processes are."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tvm_neuron.errors import OptionError
from tvm_neuron.jobs import RETRIES, Lost, results

pytestmark = pytest.mark.sweep
VICTIM, DOOMED = -1, -2


def work(job: tuple[int, str]) -> int:
    """Twice the number; the victim waits to be killed the first time, the doomed one kills itself each time."""
    number, folder = job
    if number == DOOMED:
        with Path(folder, "tried").open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    if number == VICTIM and not Path(folder, "pid").exists():
        Path(folder, "aside").write_text(str(os.getpid()))
        Path(folder, "aside").rename(Path(folder, "pid"))
        time.sleep(120)
    return 2 * number


def kill(folder: Path) -> None:
    """From outside, as whoever runs out of memory does."""
    while not (folder / "pid").exists():
        time.sleep(0.02)
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def process_of(_job: int) -> int:
    return os.getpid()


def test_on_a_cluster_and_on_none() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20})
    try:
        found = dict(results(process_of, range(3), address=cluster.address, jobs_a_process=1))
    finally:
        cluster.shutdown()
    assert len(set(found.values())) == 3  # each in a process of its own
    assert os.getpid() not in found.values()
    with pytest.raises(OptionError, match=r"no cluster of Ray answers at '127\.0\.0\.1:9'"):
        list(results(process_of, [1], address="127.0.0.1:9"))


@pytest.mark.usefixtures("processes")
def test_a_lost_worker_ends_no_more_than_its_job(tmp_path: Path) -> None:
    jobs = [(number, str(tmp_path)) for number in (VICTIM, 1, 2, DOOMED, 3, 4)]
    killer = threading.Thread(target=kill, args=(tmp_path,))
    killer.start()
    found = {number: result for (number, _), result in results(work, jobs)}
    killer.join()
    lost = found.pop(DOOMED)
    assert found == {VICTIM: -2, 1: 2, 2: 4, 3: 6, 4: 8}
    assert isinstance(lost, Lost)
    assert lost.reason.startswith("its worker died 3 times: ")
    assert len((tmp_path / "tried").read_text()) == RETRIES + 1


@pytest.mark.usefixtures("processes")
def test_an_error_of_a_job_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        list(results(partial(divide, 1), [0]))
    assert list(results(partial(divide, 1), [])) == []


def divide(one: int, other: int) -> float:
    return one / other
