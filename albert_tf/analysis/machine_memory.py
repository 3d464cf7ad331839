"""The memory of this machine, and whether a model's weights fit into it."""

from __future__ import annotations

import os

from albert_tf.analysis.costs import encoder_parameters
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

_CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"
_BYTES_PER_PARAMETER = 4  # Variables are float32 in mixed precision, too.


def machine_bytes() -> int:
    """The memory of this machine, or of the container that this process runs in."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open(_CGROUP_LIMIT) as file:
            return min(total, int(file.read()))
    except (OSError, ValueError):  # There is no container, or it has no limit ("max").
        return total


def check_weights_fit(config: AlbertConfig) -> None:
    """Raises UserError for an encoder whose weights alone are more than this machine's memory."""
    # TensorFlow would fail only after filling a part of the memory.
    number = encoder_parameters(config)
    needed, available = _BYTES_PER_PARAMETER * number, machine_bytes()
    if needed > available:
        raise UserError(
            f"An encoder of this configuration has {number:,} parameters, {needed / 2**30:,.0f} "
            f"GiB, and this machine has {available / 2**30:,.0f} GiB of memory (vocab_size "
            f"{config.vocab_size}, hidden_size {config.hidden_size}, intermediate_size "
            f"{config.intermediate_size}). Use smaller sizes."
        )
