"""How much memory there is; models that it cannot hold are refused before they are made."""

import pytest

from albert_tf import AlbertEncoder
from albert_tf.analysis import machine_memory
from albert_tf.errors import UserError
from albert_tf.pretrained.presets import get_preset


def test_this_machine_has_memory():
    assert 2**28 < machine_memory.machine_bytes() < 2**50


@pytest.mark.parametrize(
    ("content", "expected"), [("1000\n", 1000), ("max\n", 4096 * 7), (f"{2**60}\n", 4096 * 7)]
)
def test_a_container_may_have_less(monkeypatch, tmp_path, content, expected):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 7}
    monkeypatch.setattr(machine_memory.os, "sysconf", sizes.__getitem__)
    (tmp_path / "memory.max").write_text(content)
    monkeypatch.setattr(machine_memory, "_CGROUP_LIMIT", str(tmp_path / "memory.max"))
    assert machine_memory.machine_bytes() == expected
    monkeypatch.setattr(machine_memory, "_CGROUP_LIMIT", str(tmp_path / "none"))
    assert machine_memory.machine_bytes() == 4096 * 7


def test_weights_that_no_memory_holds(monkeypatch, tiny_config):
    """In the machine's memory there is room for the encoder's own parameters, and for no more."""
    with pytest.raises(UserError, match=r"5,497,842,014,784 parameters, 20,481 GiB, and"):
        AlbertEncoder(get_preset("albert-base-v2").replace(hidden_size=2**20, num_attention_heads=1,
                                                           intermediate_size=64))  # fmt: skip
    size = AlbertEncoder(tiny_config).count_params()
    monkeypatch.setattr(machine_memory, "machine_bytes", lambda: 4 * size)
    machine_memory.check_weights_fit(tiny_config)
    monkeypatch.setattr(machine_memory, "machine_bytes", lambda: 4 * size - 1)
    with pytest.raises(UserError, match=f"has {size:,} parameters"):
        machine_memory.check_weights_fit(tiny_config)
