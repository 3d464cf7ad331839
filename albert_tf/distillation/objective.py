"""The objective of a student: its own losses, plus terms that compare it with a teacher.

A new term is a row of TERMS: how its values are computed, and what it requires of both models.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.distillation import losses
from albert_tf.distillation.states import States, record_states
from albert_tf.errors import UserError
from albert_tf.keras_compat import policy_scope
from albert_tf.layers.basic import build_children, dense_layer
from albert_tf.models import AlbertEncoder, AlbertModel, objectives
from albert_tf.models.losses import Ratio, weighted_mean
from albert_tf.models.objectives import Batch, Objective

STORED = "teacher_logits"  # The input with a teacher's stored answers, used instead of a model.
DEFAULT = {"logits": 1.0, "relations": 1.0}
RELATION_HEADS = 8  # Or fewer, if 8 does not divide both hidden sizes.


# (student's outputs, teacher's outputs, temperature) -> values of the term `logits`.
Compare: TypeAlias = Callable[[Any, Any, float], tf.Tensor]


def _of_outputs(weight: float = 1.0, **compare: Compare) -> Compare:
    """The weighted sum of comparisons, which are given by the name of the output."""

    def total(student: Any, teacher: Any, temperature: float) -> tf.Tensor:
        parts = [each(student[name], teacher[name], temperature) for name, each in compare.items()]
        return weight * tf.add_n(parts)

    return total


_soft, _binary = losses.divergence, losses.binary_divergence
# The student's objective -> the comparison of outputs. Its values have the batch's weights of the
# objective's first loss; several outputs are weighted as in the objective's own loss.
_LOGITS: dict[type, Compare] = {
    objectives.ClassificationObjective: _soft,
    objectives.TokenClassificationObjective: _soft,
    objectives.MultiLabelObjective: lambda *given: tf.reduce_mean(_binary(*given), axis=1),
    # A single number has no softmax, and so no temperature.
    objectives.RegressionObjective: lambda student, teacher, _: losses.mean_square(
        student, teacher
    ),
    objectives.SpanObjective: _of_outputs(0.5, start_logits=_soft, end_logits=_soft),
    objectives.SpanObjectiveV2: _of_outputs(
        0.5, start_log_probs=_soft, end_log_probs=_soft, answer_logits=_binary
    ),
    objectives.PretrainingObjective: _of_outputs(masked_lm_logits=_soft),
}


def _cosine(student: States, teacher: States, *_: Any) -> tf.Tensor:
    return losses.cosine_distance(student.hidden[-1], teacher.hidden[-1])


def _hidden(student: States, teacher: States, _: Any, project: Callable[..., Any]) -> tf.Tensor:
    every = (len(teacher.hidden) - 1) // (len(student.hidden) - 1)  # 6 layers to 2: 0, 3, 6.
    pairs = zip(student.hidden, teacher.hidden[::every], strict=True)
    return tf.add_n([losses.mean_square(project(one), other) for one, other in pairs])


def _attention(student: States, teacher: States, mask: tf.Tensor, _: Any) -> tf.Tensor:
    every = len(teacher.attended) // len(student.attended)  # 6 layers to 2: the 3rd and 6th.
    pairs = zip(student.attended, teacher.attended[every - 1 :: every], strict=True)
    return tf.add_n([losses.score_difference(s[:2], t[:2], mask) for s, t in pairs])


def _relations(student: States, teacher: States, mask: tf.Tensor, _: Any) -> tf.Tensor:
    def last(states: States) -> list[tf.Tensor]:
        query, key, value = states.attended[-1]
        # Undo the layer's scaling of its queries by 1 / sqrt(D).
        return [query * tf.cast(tf.sqrt(float(query.shape[-1])), query.dtype), key, value]

    widths = [states.hidden[-1].shape[-1] for states in (student, teacher)]
    parts = math.gcd(RELATION_HEADS, *widths)
    pairs = zip(last(student), last(teacher))
    return tf.add_n([losses.relation_divergence(*each, mask, parts) for each in pairs])


# A requirement: its wording, a size in a configuration, whether the two models' sizes fit.
Need: TypeAlias = tuple[str, Callable[[AlbertConfig], int], Callable[[int, int], bool]]
_WIDTH: Need = ("equal hidden sizes", lambda config: config.hidden_size, operator.eq)
_HEADS: Need = ("equal numbers of heads", lambda each: each.num_attention_heads, operator.eq)
_LAYERS: Need = (
    "a teacher with a multiple of the student's layers",
    lambda config: config.num_hidden_layers * config.inner_group_num,
    lambda student, teacher: teacher % student == 0,
)


class Term(NamedTuple):
    """A term: a function from the states of student and teacher, the mask and the learned layer to
    values float32 [B, S] (None if made of logits or labels), and its requirements on both models.
    """

    of_states: Callable[[States, States, tf.Tensor, Any], tf.Tensor] | None = None
    needs: Sequence[Need] = ()


TERMS = {
    "logits": Term(),
    "labels": Term(),
    "masked_words": Term(),
    "cosine": Term(_cosine, [_WIDTH]),
    "hidden": Term(_hidden, [_LAYERS]),
    "attention": Term(_attention, [_HEADS, _LAYERS]),
    "relations": Term(_relations),
}


def _own_term(loss: str) -> str:
    """The term that a loss of the student's own objective belongs to."""
    return "masked_words" if loss == "masked_lm_loss" else "labels"


class _WithProjection(AlbertModel):
    """A student with the layer that `hidden` trains, which projects its width to the teacher's."""

    def __init__(self, student: AlbertModel, width: int) -> None:
        super().__init__(student.config, student.packed, "with_projection", student.dtype_policy)
        self.student, self.built = student, True
        with policy_scope(self.dtype_policy):
            self.projection = dense_layer(width, student.config, "projection")
        build_children(student.config.hidden_size, self.projection)

    @property
    def encoder(self) -> AlbertEncoder:
        """The student's encoder."""
        return self.student.encoder


def check_objective(objective: Objective) -> None:
    """Raises UserError for an objective on which a teacher cannot be compared."""
    if type(objective) not in _LOGITS:
        raise UserError(
            f"A --teacher does not go with {type(objective).__name__}: it needs masked words "
            "(--objective=mlm) or a task of fine-tuning. Leave --teacher out."
        )


class DistillationObjective:
    """The weighted sum of terms, see `distill`. Its metrics: those of the student's objective, and
    the weighted parts of the loss, named `distill_<term>` and `weighted_<student's loss>`.
    """

    def __init__(
        self,
        student: Objective,
        teacher: AlbertModel | None,
        terms: Mapping[str, float],
        temperature: float,
    ) -> None:
        """If `teacher` is None, batches contain its stored answers: STORED, float32 [B, C]."""
        check_objective(student)
        if not terms or not all(0 < each < math.inf for each in (*terms.values(), temperature)):
            raise UserError(
                f"terms={dict(terms)}, temperature={temperature:g}: expected one term or more, "
                "with weights above 0, and a temperature above 0."
            )
        if teacher is student.model:
            raise UserError("The teacher is the student itself. Use another model.")
        self._own: Any = student  # A ModelObjective.
        self._teacher, self._terms, self._temperature = teacher, dict(terms), temperature
        self.student = student.model
        self._check_answers()
        self._of_states = {name: each for name in terms if (each := TERMS[name].of_states)}
        for name in self._of_states:
            self._check_sizes(name)
        self.model: Any = self.student
        if teacher is not None:
            teacher.trainable = False
            if "hidden" in terms:
                with self.student.distribute_strategy.scope():
                    self.model = _WithProjection(self.student, teacher.config.hidden_size)
        self._weights = {
            name: terms[_own_term(name)] for name in student.losses if _own_term(name) in terms
        }
        self.losses = {f"weighted_{name}": student.losses[name] for name in self._weights}
        if "logits" in terms:
            self.losses["distill_logits"] = next(iter(student.losses.values()))
        self.losses |= {f"distill_{name}": "input_mask" for name in self._of_states}
        self.metrics = (*student.metrics, *self.losses)

    def _check_answers(self) -> None:
        """Raises UserError for a term that is unknown or does not suit the student's objective."""
        own = {_own_term(name) for name in self._own.losses}
        known = [name for name in TERMS if name in own or name not in ("labels", "masked_words")]
        for name in self._terms:
            if name not in known:
                raise UserError(
                    f"--distillation={name} is not a term for this kind of training; allowed: "
                    f"{', '.join(known)}."
                )
        if self._teacher is None or "logits" not in self._terms:
            return
        theirs, ours = map(_answers_of, (self._teacher, self.student))
        if theirs != ours:
            raise UserError(
                f"--teacher is of another task or of other classes ({theirs}) than the student "
                f"({ours}), and the term logits needs its answers. Name one that was trained on "
                "the task, or give --distillation without logits."
            )

    def _check_sizes(self, name: str) -> None:
        """Raises UserError where a term cannot compare the layers of the two models."""
        if self._teacher is None:
            raise UserError(
                f"--distillation={name} compares the layers of two models, and --teacher names "
                "stored answers. Name the teacher's model, or use logits."
            )
        for what, size, fits in TERMS[name].needs:
            ours, theirs = map(size, (self.student.config, self._teacher.config))
            if not fits(ours, theirs):
                raise UserError(
                    f"--distillation={name} needs {what}: the student has {ours}, the teacher "
                    f"{theirs}. Use relations, which works with any sizes."
                )

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Ratios by name; batch: as for the student's objective."""
        with self._recording(self.student) as states:
            outputs = self.student(batch, training=training, seed=seed)
        ratios = self._own.ratios_of(outputs, batch)
        answers, their_states = self._ask_teacher(batch)
        parts = {f"weighted_{name}": (self._weights[name], ratios[name]) for name in self._weights}
        if "logits" in self._terms:
            values = _LOGITS[type(self._own)](outputs, answers, self._temperature)
            ratio = weighted_mean(values, batch[self.losses["distill_logits"]])
            parts["distill_logits"] = self._terms["logits"], ratio
        for name, of_states in self._of_states.items():
            mask, project = _flat(batch)["input_mask"], getattr(self.model, "projection", None)
            ratio = weighted_mean(of_states(states, their_states, mask, project), mask)
            parts[f"distill_{name}"] = self._terms[name], ratio
        for name, (weight, ratio) in parts.items():
            # In the numerator, because denominators must follow from the batch alone, see `losses`.
            ratios[name] = Ratio(weight * ratio.numerator, ratio.denominator)
        return ratios

    def _recording(self, model: AlbertModel) -> contextlib.AbstractContextManager[Any]:
        encoder: Any = getattr(model, "encoder", model)
        return record_states(encoder) if self._of_states else contextlib.nullcontext()

    def _ask_teacher(self, batch: Batch) -> tuple[Any, Any]:
        """The teacher's outputs and states, through which no gradient flows."""
        if self._teacher is None:
            return batch[STORED], None
        # An encoder alone accepts no inputs with choices.
        is_encoder = isinstance(self._teacher, AlbertEncoder)
        with self._recording(self._teacher) as states:
            outputs = self._teacher(_flat(batch) if is_encoder else batch, training=False)
        # An empty tuple instead of None, which `map_structure` would treat as a tensor.
        return tf.nest.map_structure(tf.stop_gradient, (outputs, states or ()))


def _answers_of(model: AlbertModel) -> str:
    """The model's class, and the attributes that define the form of its answers."""
    found = {n: getattr(model, n, None) for n in ("num_classes", "multi_label")}
    return ", ".join([type(model).__name__, *(f"{n}={found[n]}" for n in found if found[n])])


def _flat(batch: Batch) -> Batch:
    """The inputs of an encoder, [B, S], or [B * C, S] where examples have C choices."""
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return {name: tf.reshape(batch[name], [-1, tf.shape(batch[name])[-1]]) for name in names}


def distill(
    student: Objective,
    teacher: AlbertModel,
    terms: Mapping[str, float] = DEFAULT,
    temperature: float = 2.0,
) -> DistillationObjective:
    """The objective of a student that learns from a teacher.

    Args:
      student: the student's own objective.
      teacher: a model of the student's class, or an encoder where `logits` is not a term. It is
        frozen: its `trainable` becomes False.
      terms: their weights by name, see docs/distillation.md.
      temperature: the softmax temperature of `logits`.

    Returns:
      An objective for a training loop; its `model` is what is trained.

    Raises:
      UserError: the two models cannot be compared by these terms, or a weight or the temperature
        is not above 0.
    """
    return DistillationObjective(student, teacher, terms, temperature)
