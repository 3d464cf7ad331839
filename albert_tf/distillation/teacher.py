"""The settings of distillation, and loading of the teacher's model from any source of weights."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from albert_tf.checkpoints import formats
from albert_tf.distillation.objective import DEFAULT, TERMS, DistillationObjective, check_objective
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder, AlbertModel
from albert_tf.models.objectives import Objective
from albert_tf.pretrained.loading import locate
from albert_tf.training.initial_model import check_data_fit
from data_pipeline.files import atomic_files
from data_pipeline.settings import Settings, setting
from data_pipeline.tokenizers.loading import load_tokenizer

_TEMPERATURE = 2.0


@dataclasses.dataclass(frozen=True)
class Distillation(Settings):
    """The teacher of a run, and what is learned from it."""

    teacher: str | None = setting(
        None,
        "Teacher to distill from: any value of --init_checkpoint; in fine-tuning also stored "
        "answers: a TSV file, or the mean of a series or of several runs, separated by commas.",
        expert=True,  # To keep --help short.
    )
    distillation: tuple[str, ...] = setting(
        (),
        f"Terms of the loss with their weights, as in logits:5,cosine:1, of: {', '.join(TERMS)}. "
        "By default logits and relations, or only logits for stored answers.",
        expert=True,
    )
    temperature: float = setting(
        _TEMPERATURE, "Softmax temperature of the term logits.", above=0, expert=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.teacher == "":
            raise UserError("--teacher is empty. Name a teacher, or leave the flag out.")
        if "logits" not in self.terms() and self.temperature != _TEMPERATURE:
            raise UserError(
                f"--temperature={self.temperature:g} is for the term logits, and --distillation="
                f"{','.join(self.distillation)} has none. Leave --temperature out."
            )
        for field in dataclasses.fields(self):
            if self.teacher is None and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name} needs a --teacher. Name one.")

    def terms(self, default: dict[str, float] = DEFAULT) -> dict[str, float]:
        """Term -> its weight."""
        pairs = [part.strip().partition(":") for part in self.distillation]
        try:
            terms = {name: float(weight) if colon else 1.0 for name, colon, weight in pairs}
        except ValueError:
            terms = {}
        is_good = all(0 < terms[name] < math.inf and name in TERMS for name in terms)
        # Fewer terms than pairs: one was named twice, or a weight is not a number.
        if len(terms) < len(pairs) or not is_good:
            raise UserError(
                f"--distillation={','.join(self.distillation)} should be terms with weights above "
                f"0, each term once, as in logits:5,cosine:1. Terms: {', '.join(TERMS)}."
            )
        return terms or dict(default)


class Shared(NamedTuple):
    """Properties of the data that the teacher must share; labels: None in pre-training."""

    vocab_fingerprint: str
    vocab_size: int
    max_seq_length: int
    labels: Sequence[str] | None = None


class Learned(NamedTuple):
    """The objective of a run, with or without a teacher, and what the run records about it."""

    objective: Objective
    must_not_change: dict[str, Any]
    card: dict[str, str]


def with_teacher(
    objective: Objective,
    settings: Distillation | None,
    shared: Shared,
    stored_sha256: str | None = None,
) -> Learned:
    """The student's objective with the terms of the settings; unchanged if there is no teacher.
    `stored_sha256`: hash of the stored answers that replace a teacher model.
    """
    if settings is None or settings.teacher is None:
        return Learned(objective, {"teacher": None}, {})
    check_objective(objective)
    name, teacher = settings.teacher, None
    terms, sha256 = settings.terms({"logits": 1.0}), stored_sha256
    if stored_sha256 is None:
        terms = settings.terms()
        teacher, sha256 = _load(name, objective.model, shared, "logits" in terms)
    kind = type(teacher).__name__ if teacher else "stored"
    weights = ", ".join(f"{weight:g} {term}" for term, weight in terms.items())
    return Learned(
        DistillationObjective(objective, teacher, terms, settings.temperature),
        {"teacher": sha256, "distillation": terms, "temperature": settings.temperature},
        {
            "teacher": f"{name} ({kind})",
            "distillation": weights,
            "expected first loss": "depends on the teacher",
        },
    )


def _load(
    name: str, student: AlbertModel, shared: Shared, needs_answers: bool
) -> tuple[AlbertModel, str]:
    """The teacher (only its encoder if no answers are needed) and the hash of its weights."""
    source = locate(name)
    config, vocab_file = source.config(), source.vocab_file
    # If no vocabulary lies next to the weights, only its size can be compared.
    fingerprint = load_tokenizer(vocab_file).fingerprint if vocab_file else shared.vocab_fingerprint
    if (fingerprint, config.vocab_size) != (shared.vocab_fingerprint, shared.vocab_size):
        raise UserError(
            f"--teacher={name} has another vocabulary than the student, so their tokens "
            "cannot be compared. Use a teacher with the same one, or, in fine-tuning, its stored "
            "answers (--mode=predict --splits=train)."
        )
    check_data_fit(config, shared.vocab_size, shared.max_seq_length, f"--teacher={name}")
    with student.distribute_strategy.scope():
        if needs_answers:
            teacher = source.make_model(config)
            if not (shared.labels is None or source.has_labels(shared.labels)):
                names = ", ".join(source.labels_as(shared.labels) or ()) or "no names"
                raise UserError(
                    f"--teacher={name} holds a model of another task or of other classes "
                    f"({type(teacher).__name__}: {names}), and the term logits needs its answers. "
                    "Name one that was trained on the task, or give --distillation without logits."
                )
            formats.load_whole(teacher, source)
        else:
            teacher = AlbertEncoder(config)
            formats.load_start(teacher, source)
    # Packing depends on the devices of the run, so take it from the student.
    getattr(teacher, "encoder", teacher).packed = student.encoder.packed
    hashes = map(atomic_files.file_sha256, source.weights_files)
    return teacher, hashlib.sha256("".join(hashes).encode()).hexdigest()
