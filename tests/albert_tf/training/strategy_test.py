"""Strategies by name, and which process is the first."""

import socket
from types import SimpleNamespace

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import strategy
from albert_tf.training.strategy import is_chief, make_strategy, sum_over_workers, wait_for_all


def test_names_that_are_refused():
    with pytest.raises(UserError, match="--distribution=two is not one of one_device, mirrored"):
        make_strategy("two")
    with pytest.raises(UserError, match="--tpu=local needs --distribution=tpu, not mirrored"):
        make_strategy("mirrored", "local")
    with pytest.raises(UserError, match="--distribution=tpu needs --tpu: a name"):
        make_strategy("tpu")


@pytest.fixture
def devices(monkeypatch):
    """Names of TensorFlow's devices by kind, to be changed; strategies are those names."""
    names = {"CPU": ["/cpu:0", "/cpu:1"], "GPU": []}

    def list_logical_devices(kind):
        return [SimpleNamespace(name=name) for name in names[kind]]

    monkeypatch.setattr(tf.config, "list_logical_devices", list_logical_devices)
    monkeypatch.setattr(tf.distribute, "OneDeviceStrategy", lambda device: device)
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda devices: devices)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda: "workers")
    return names


def test_devices_of_this_machine(devices, monkeypatch):
    assert make_strategy("one_device") == "/cpu:0"
    assert make_strategy("mirrored") == ["/cpu:0", "/cpu:1"]
    with pytest.raises(UserError, match="variable TF_CONFIG, which is not set"):
        make_strategy("multi_worker_mirrored")
    for odd in ("nonsense", "{}", "[]", '{"cluster": {"worker": ["localhost:1"]}}'):
        monkeypatch.setenv("TF_CONFIG", odd)
        with pytest.raises(UserError, match="TF_CONFIG=.* does not name the workers"):
            make_strategy("multi_worker_mirrored")
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["localhost:1"]}, "task": {}}')
    assert make_strategy("multi_worker_mirrored") == "workers"
    devices["GPU"] = ["/gpu:0", "/gpu:1"]
    assert make_strategy("one_device") == "/gpu:0"
    assert make_strategy("mirrored") == ["/gpu:0", "/gpu:1"]


@pytest.fixture
def worker(monkeypatch):
    """(task type, number, jobs) -> the strategy of one of several workers."""

    def make(task_type: str | None, task_id: int, jobs: list[str]):
        kind = tf.distribute.MultiWorkerMirroredStrategy
        cluster = SimpleNamespace(jobs=jobs)
        resolver = SimpleNamespace(
            task_type=task_type, task_id=task_id, cluster_spec=lambda: cluster
        )
        monkeypatch.setattr(kind, "cluster_resolver", resolver, raising=False)
        return kind.__new__(kind)

    return make


@pytest.mark.parametrize(
    ("task_type", "task_id", "jobs", "expected"),
    [
        ("worker", 0, ["worker"], True),
        ("worker", 1, ["worker"], False),
        ("worker", 0, ["chief", "worker"], False),
        ("chief", 0, ["chief", "worker"], True),
        (None, 0, [], True),
        ("", 3, [], True),
    ],
)
def test_the_first_worker_writes(worker, task_type, task_id, jobs, expected):
    assert is_chief(worker(task_type, task_id, jobs)) is expected


def test_a_process_alone_writes():
    assert is_chief(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert is_chief(tf.distribute.get_strategy())
    assert wait_for_all(tf.distribute.OneDeviceStrategy("CPU:0")) is None


def test_sums_over_replicas(two_devices):
    assert sum_over_workers(two_devices, tf.constant(1.5)) == 3.0


def test_workers_wait_for_each_other(worker, monkeypatch):
    found, calls = worker("worker", 0, ["worker"]), []
    monkeypatch.setattr(strategy, "sum_over_workers", lambda *given: calls.append(given) or 0.0)
    wait_for_all(found)
    assert calls == [(found, 0.0)]
    wait_for_all(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert len(calls) == 1


@pytest.mark.parametrize(("address", "port"), [("grpc://10.0.0.1:1234", 1234), ("grpc://h", 8470)])
def test_a_tpu_by_its_address(monkeypatch, address, port):
    """Somebody has to listen there, since TensorFlow would try for minutes."""
    asked = []

    def create_connection(place, timeout):
        asked.append((*place, timeout))
        raise ConnectionRefusedError("nobody there. At all")

    monkeypatch.setattr(socket, "create_connection", create_connection)
    with pytest.raises(UserError, match=f"no TPU .* --tpu={address}: nobody there. Check its name"):
        make_strategy("tpu", address)
    assert asked == [(address[7:].split(":")[0], port, 10)]


@pytest.mark.parametrize(("tpu", "is_connected"), [("local", False), ("name", True)])
def test_a_tpu_by_name(monkeypatch, tpu, is_connected):
    calls = []
    resolver = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolver, "TPUClusterResolver", lambda tpu: f"resolver of {tpu}")
    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", calls.append)
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", calls.append)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", lambda resolver: ("strategy", resolver))
    assert make_strategy("tpu", tpu) == ("strategy", f"resolver of {tpu}")
    assert calls == [f"resolver of {tpu}"] * (1 + is_connected)
