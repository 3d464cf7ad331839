"""The batches that benchmarks.encoder and benchmarks.fast_pieces measure."""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.processes import Worker

MODELS = ("albert-base-v2", "bert-base")


def real_lengths(count: int, mean: float, longest: int) -> tuple[int, ...]:
    """Token counts distributed like those of real sentences: log-normal, capped at `longest`."""
    spread = 0.45
    drawn = np.random.default_rng(1).lognormal(np.log(mean) - spread**2 / 2, spread, count)
    drawn[0] = longest
    return tuple(int(length) for length in np.clip(np.round(drawn), 4, longest))


@dataclasses.dataclass(frozen=True)
class Case:
    """A batch of sequences of given lengths.

    Attributes:
      padded_to: length to which peers pad; None: the longest, as this project always does.
      model: a preset of MODELS.
    """

    name: str
    lengths: tuple[int, ...]
    task: str = "pretraining"
    padded_to: int | None = None
    model: str = "albert-base-v2"

    def request(self, worker: Worker, which: str, precision: str) -> dict:
        """The request for a worker, see workers/protocol.py.

        Args:
          which: "forward" or "training".
          precision: "float32" or "bfloat16".
        """
        longest = max(self.lengths)
        padded_to = longest if worker.kind == "ours" else self.padded_to or longest
        return {
            "pass": which,
            "model": self.model,
            "task": self.task,
            "precision": precision,
            "lengths": self.lengths,
            "padded_to": padded_to,
        }


_SST2, _MRPC = real_lengths(64, 23, 48), real_lengths(32, 53, 86)
CASES = (
    Case("1x32", (32,)),
    Case("8x128", (128,) * 8),
    Case("32x128", (128,) * 32),
    Case("4x512", (512,) * 4),
    Case("64 SST-2-like", _SST2, "classification"),
    Case("64 SST-2-like, peers to 128", _SST2, "classification", 128),
    Case("32 MRPC-like", _MRPC, "classification"),
    Case("32 MRPC-like, peers to 128", _MRPC, "classification", 128),
)
