"""The settings of a run: each field is declared once, and programs have a flag of its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.machine import fast_switch
from albert_tf.optimization import decay_start
from albert_tf.training.starts import CHANGES
from albert_tf.training.strategy import DISTRIBUTIONS
from data_pipeline.settings import Settings, setting

OPTIMIZERS = ("lamb", "adamw", "muon", "tfa_lamb")
SCHEDULES = ("polynomial", "wsd")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
MAX_BATCH_SIZE = 2**20  # 32 times the largest that LAMB was shown for.
MAX_BAD_IN_A_ROW = 10  # Steps; see `LoopSettings.max_bad_steps`.


@dataclasses.dataclass(frozen=True)
class OptimizerSettings(Settings):
    """An optimizer and its learning rate."""

    optimizer: str = setting(
        help="Update rule: lamb and adamw as in google-research/albert; muon, which makes updates "
        "of the layers' matrices orthogonal and uses adamw for all else; tfa_lamb of TensorFlow "
        "Addons.",
        one_of=OPTIMIZERS,
    )
    learning_rate: float = setting(help="Highest learning rate, reached at the end of the warm-up.")
    num_warmup_steps: int = setting(0, "Number of updates until the highest learning rate.")
    learning_rate_power: float = setting(
        1.0, "Exponent of the polynomial decay; 1 is linear.", at_most=100, expert=True
    )
    decay_after_warmup: bool = setting(
        False,
        "Begin the polynomial decay at the end of the warm-up instead of at the first update.",
        expert=True,
    )
    bias_correction: bool = setting(
        False,
        "Correct the bias of adamw's and lamb's moments, which the reference does not do.",
        expert=True,
    )
    layerwise_learning_rate_decay: float = setting(
        1.0,
        "Factor that the learning rate is multiplied by for each layer further down; for models "
        "whose layers do not all share their weights.",
        above=0,
        at_most=1,
        expert=True,
    )
    weight_decay_rate: float = setting(
        0.01, "Weight decay, applied as part of the update.", expert=True
    )
    global_clipnorm: float = setting(
        1.0, "Largest global norm of the gradient; 0 turns clipping off.", expert=True
    )
    schedule: str = setting(
        "polynomial",
        "Course of the learning rate after the warm-up: polynomial falls over all updates; wsd "
        "(warm-up, stable, decay) falls only at the end; a longer run resumes before the decay.",
        one_of=SCHEDULES,
    )
    decay_share: float = setting(
        0.2,
        "Share of the updates during which the learning rate falls with --schedule=wsd.",
        at_most=1,
        expert=True,
    )
    beta_1: float = setting(
        0.9, "Decay rate of the gradient's average (first moment).", below=1, expert=True
    )
    beta_2: float = setting(
        0.999,
        "Decay rate of the squared gradient's average (second moment); 0.98 follows changes "
        "sooner.",
        below=1,
        expert=True,
    )
    epsilon: float = setting(
        1e-6,
        "Number added to the root of the second moment, which the update is divided by.",
        above=0,
        expert=True,
    )

    muon_momentum: float = setting(
        0.95,
        "Decay rate of the gradient's average for the matrices of --optimizer=muon; the betas are "
        "those of its adamw.",
        below=1,
        expert=True,
    )

    ema_decay: float = setting(
        0.0,
        "Decay rate, such as 0.999, of a running average of the weights, which is evaluated and "
        "saved instead of them; 0: no average.",
        below=1,
        expert=True,
    )

    def decay_start(self, num_train_steps: int) -> int | None:
        """The step from which the rate of wsd falls; None with another schedule."""
        return decay_start(num_train_steps, self.decay_share) if self.schedule == "wsd" else None


@dataclasses.dataclass(frozen=True)
class LoopSettings(Settings):
    """The length of a run, and when it reports, saves and evaluates."""

    num_train_steps: int = setting(help="Number of updates in all.", at_least=1)
    steps_per_loop: int = setting(
        10, "Updates between two reports, run without returning to Python.", at_least=1, expert=True
    )
    checkpoint_steps: int = setting(
        1000, "Updates between two checkpoints.", at_least=1, expert=True
    )
    eval_steps: int = setting(
        0, "Updates between two evaluations; 0 evaluates at the end of training only."
    )
    keep_checkpoints: int = setting(
        3, "Number of checkpoints that are kept, the newest ones.", at_least=1, expert=True
    )
    # Weights do not recover without updates, so MAX_BAD_IN_A_ROW end a run in any case.
    max_bad_steps: int = setting(
        0,
        "Number of steps without a finite loss and gradient that one start of the run may leave "
        "out; ten in a row end it.",
        expert=True,
    )
    allow_changes: tuple[str, ...] = setting(
        (),
        f"Changes to accept when a run is resumed, of: {', '.join(CHANGES)}. A change that is not "
        "named here is refused.",
        one_of=CHANGES,
        expert=True,
    )
    # See hooks/deadline.py.
    max_minutes: float = setting(
        0.0,
        "Minutes of training over all starts; with --schedule=wsd the decay begins early enough "
        "to end with them, if --num_train_steps would take longer. 0: no limit.",
        at_most=1e6,
        expert=True,
    )
    eval_first: bool = setting(
        False,
        "Also evaluate before the first update, to see the scores of --init_checkpoint.",
        expert=True,
    )

    def next_stop(self, step: int) -> int:
        """The next step after `step` at which something is reported, saved or evaluated.

        With periods of 10, 25 and 40 steps: 0 -> 10 -> 20 -> 25 -> 30 -> 40 -> 50.
        """
        periods = filter(None, (self.steps_per_loop, self.checkpoint_steps, self.eval_steps))
        return min(self.num_train_steps, *(step - step % period + period for period in periods))

    def is_due(self, step: int, period: int) -> bool:
        """Whether something done every `period` steps (0: never) and at the end is to be done at
        `step`.
        """
        return step == self.num_train_steps or (period > 0 and step % period == 0)


@dataclasses.dataclass(frozen=True)
class RunSettings(Settings):
    """The settings of a run, except those of its model and its data.

    `flags` are recorded in flags.json, and compared with those of the last start; None: the fields
    of these settings, under the names that the programs' flags have.
    """

    output_dir: str = setting(help="Folder of the run; an existing run there is resumed.")
    optimizer: OptimizerSettings  # type: ignore[misc]  # mypy takes `setting` for a default.
    loop: LoopSettings  # type: ignore[misc]
    gradient_accumulation_steps: int = setting(
        1,
        "Number of parts that the batch of a replica is split into; one update follows them all.",
        at_least=1,
    )
    eval_batch_size: int = setting(
        64,
        "Number of sequences per evaluation step, over all replicas.",
        at_least=1,
        at_most=MAX_BATCH_SIZE,
        expert=True,
    )
    jit_compile: bool = False  # See `DeviceSettings`.
    overwrite: bool = setting(False, "Delete the existing run in --output_dir and start over.")
    flags: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loop.max_minutes and self.optimizer.schedule != "wsd":
            raise UserError(
                f"--max_minutes={self.loop.max_minutes:g} does not work with --schedule="
                f"{self.optimizer.schedule}, which needs to know the number of updates from the "
                "start. Use --schedule=wsd."
            )

    def as_flags(self) -> dict[str, Any]:
        """The entries of flags.json: these settings, and the precision in use."""
        if self.flags is not None:
            return dict(self.flags)
        fields = dataclasses.asdict(self)
        parts = fields.pop("optimizer"), fields.pop("loop")
        del fields["flags"]
        precision = keras.mixed_precision.global_policy().name
        return {**fields, **parts[0], **parts[1], "precision": precision}


@dataclasses.dataclass(frozen=True)
class DeviceSettings(Settings):
    """The devices of a run, and the form and precision of its arithmetic."""

    distribution: str = setting(
        "mirrored",
        "Devices to use: one (one_device), all GPUs of this machine (mirrored), those of several "
        "machines (multi_worker_mirrored), or a TPU (tpu).",
        one_of=DISTRIBUTIONS,
    )
    tpu: str | None = setting(
        None,
        "Name or address of the TPU for --distribution=tpu; 'local' on a TPU machine.",
        is_address=True,
        expert=True,
    )
    precision: str = setting(
        "float32", "Precision of the arithmetic; variables stay float32.", one_of=PRECISIONS
    )
    jit_compile: bool = setting(
        False,
        "Compile training steps with XLA, as TPUs always do; slower on most CPUs.",
        expert=True,
    )
    fast: str = setting(
        "auto",
        "Use the CPU-optimized layers (XLA-compiled kernels). auto: on for the CPUs of Linux "
        "machines where XLA compiles.",
        one_of=fast_switch.MODES,
        expert=True,
    )
    packed: str = setting(
        "auto",
        "Leave padding out of the dense layers. auto: except on GPUs and TPUs, and with "
        "--jit_compile.",
        one_of=("auto", "true", "false"),
        expert=True,
    )
    deterministic: bool = setting(
        False,
        "Make runs on GPUs repeatable bit for bit, at some cost in speed; CPUs need no flag.",
        expert=True,
    )
    seed: int = 0  # Of Keras's and TensorFlow's random operations, for `deterministic` only.
