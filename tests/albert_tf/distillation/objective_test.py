"""Distillation: losses and gradients as PyTorch has them, what is refused, two devices as one."""

import contextlib
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertPretrainer, distill
from albert_tf.checkpoints.names import variable_names
from albert_tf.distillation import losses
from albert_tf.errors import UserError
from albert_tf.models.objectives import ClassificationObjective, PretrainingObjective
from albert_tf.optimization import AdamW
from albert_tf.training import Stepper
from albert_tf.variable_names import variable_name
from tests.bert_family_test import GOLDENS, read, theirs
from tests.conformance_cases import BASE, CLASSES, make_batch

MASK = tf.sequence_mask([7, 4, 1], 7, tf.int32)
LOSSES = {
    "divergence": lambda s, t: losses.divergence(s, t, 2.0),
    "binary_divergence": lambda s, t: losses.binary_divergence(s, t, 2.0),
    "cosine_distance": losses.cosine_distance,
    "mean_square": losses.mean_square,
    "score_difference": lambda s, t: losses.score_difference(s, t, MASK),
    "relation_divergence": lambda s, t: losses.relation_divergence(s, t, MASK, 4),
}
LIVE = [
    pytest.mark.table,
    pytest.mark.skipif(theirs() is None, reason="COMPARED WITH GOLDENS ONLY: no ALBERT_TF_PEERS"),
]


@pytest.fixture(params=["goldens", pytest.param("live", marks=LIVE)])
def folder(request, tmp_path):
    """What goldens/distillation/make.py writes: once and for all, or now with another seed."""
    if request.param == "goldens":
        return GOLDENS / "distillation"
    make = GOLDENS / "distillation" / "make.py"
    subprocess.run([theirs(), make, tmp_path, "9"], check=True, capture_output=True)
    return tmp_path


def test_losses_and_their_gradients(folder):
    with np.load(folder / "losses.npz") as file:
        arrays = dict(file)
    assert {name.partition("/")[0] for name in arrays} == set(LOSSES)
    for name, function in LOSSES.items():
        student, teacher, expected, weights, gradient = (
            tf.constant(arrays[f"{name}/{each}"])
            for each in ("student", "teacher", "values", "weights", "gradient")
        )
        is_masked = name in ("score_difference", "relation_divergence")
        with tf.GradientTape() as tape:
            tape.watch(student)
            values = function(student, teacher)
            if is_masked:  # Padding is no query.
                values *= tf.cast(MASK, tf.float32)
            weighted = tf.reduce_sum(values * weights)
        np.testing.assert_allclose(values, expected, 1e-5, 1e-5, err_msg=name)
        found = tape.gradient(weighted, student)
        np.testing.assert_allclose(found, gradient, 1e-5, 1e-5, err_msg=name)


@pytest.mark.fast_layers
@pytest.mark.parametrize("packed", [False, True])
def test_all_terms_of_two_berts(folder, packed):
    """Their values, and the gradient of their sum by each weight of the student, by PyTorch."""
    with np.load(folder / "terms.npz") as file:
        expected = dict(file)
    (student, _), (teacher, _) = (read(folder / name) for name in ("student", "teacher"))
    for model in (student, teacher):
        model.encoder.packed = packed
    weights = {
        name.removeprefix("weight/"): float(value)
        for name, value in expected.items()
        if name.startswith("weight/")
    }
    objective = distill(ClassificationObjective(student), teacher, weights)
    projection = objective.model.projection
    projection.kernel.assign(expected["kernel"])
    projection.bias.assign(expected["bias"])
    batch = {
        "input_word_ids": tf.constant(expected["ids"]),
        "input_mask": tf.constant(expected["mask"]),
        "input_type_ids": tf.zeros([3, 7], tf.int32),
        "label_ids": tf.constant(expected["labels"], tf.int32),
        "example_weights": tf.ones([3]),
    }
    with tf.GradientTape() as tape:
        ratios = objective.ratios(batch, training=False)
        values = {name: ratios[name].numerator / ratios[name].denominator for name in ratios}
        loss = tf.add_n([values[name] for name in objective.losses])
    for name, weight in weights.items():
        figure = "weighted_cross_entropy" if name == "labels" else f"distill_{name}"
        value = weight * expected[f"value/{name}"]
        np.testing.assert_allclose(values[figure], value, 1e-5, 1e-5, err_msg=name)
    rows = variable_names(student, "bert")
    variables = objective.model.trainable_variables
    for variable, found in zip(variables, tape.gradient(loss, variables), strict=True):
        name, transposed = variable_name(variable).removeprefix("projection/"), False
        if name not in ("kernel", "bias"):
            row = rows[name]
            name, transposed = row.huggingface, row.huggingface_transposed
        value = expected[f"gradient/{name}"]
        value = value.T if transposed else value
        np.testing.assert_allclose(tf.convert_to_tensor(found), value, 1e-4, 2e-5, err_msg=name)


def test_two_devices_equal_one(two_devices, eagerly):
    """All terms; a student of one layer, from a teacher of two."""
    found, one_device = [], tf.distribute.OneDeviceStrategy("CPU:0")
    for strategy, mode in ((one_device, eagerly()), (two_devices, contextlib.nullcontext())):
        tf.random.set_seed(3)
        with strategy.scope():
            teacher = AlbertClassifier(BASE, CLASSES)
            config = BASE.replace(num_hidden_layers=1, intermediate_size=16)
            student = AlbertClassifier(config, CLASSES, dropout_rate=0.0)
            for model in (teacher, student):
                for number, variable in enumerate(model.variables):
                    seed = [number, model is teacher]
                    variable.assign(tf.random.stateless_normal(variable.shape, seed) * 0.2)
            names = ("logits", "labels", "cosine", "hidden", "attention", "relations")
            terms = dict.fromkeys(names, 1.0)
            objective = distill(ClassificationObjective(student), teacher, terms)
            objective.model.projection.kernel.assign(tf.ones([16, 16]) * 0.1)
            stepper = Stepper(objective, AdamW(0.002), strategy)
            stepper.optimizer.build(objective.model.trainable_variables)
        data = tf.data.Dataset.from_tensors(make_batch()).unbatch().batch(4).repeat()
        with mode:
            stepper.train(iter(stepper.distribute(data)), tf.constant(3))
        assert "distill_hidden" in objective.metrics
        found.append([variable.numpy() for variable in objective.model.trainable_variables])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def student(objective=ClassificationObjective, model=AlbertClassifier, **changes):
    arguments = {"num_classes": CLASSES} if model is AlbertClassifier else {}
    return objective(model(BASE.replace(**changes), **arguments))


@pytest.mark.parametrize(
    ("terms", "changes", "message"),
    [
        ({"cosine": 1}, {"hidden_size": 32}, "equal hidden sizes: the student has 32, the teacher"),
        ({"attention": 1}, {"num_attention_heads": 4}, "needs equal numbers of heads: .* 4, the"),
        ({"hidden": 1}, {"num_hidden_layers": 3}, "student's layers: the student has 3, the teach"),
        ({"attention": 1}, {"num_hidden_layers": 3}, "teacher 2. Use relations, which works"),
        ({"masked_words": 1}, {}, "masked_words is not a term .*allowed: logits, labels, co"),
        ({"logit": 1}, {}, "logit is not a term for this"),
    ],
)
def test_pairs_that_cannot_be_compared(terms, changes, message):
    teacher = AlbertEncoder(BASE)
    with pytest.raises(UserError, match=message):
        distill(student(**changes), teacher, terms)


@pytest.mark.parametrize(
    ("teacher", "terms", "temperature", "message"),
    [
        (AlbertClassifier(BASE, CLASSES + 1), {"logits": 1}, 2, "another task or of other classes"),
        (AlbertEncoder(BASE), {"logits": 1}, 2, r"\(AlbertEncoder\) than"),
        (None, {"logits": 1}, 2, "teacher is the student itself"),
        (AlbertEncoder(BASE), {}, 2, "expected one term or more"),
        (AlbertEncoder(BASE), {"cosine": -1}, 2, "weights above 0"),
        (AlbertEncoder(BASE), {"cosine": 1}, 0, "temperature above 0"),
    ],
)
def test_what_a_loop_of_ones_own_may_not_ask(teacher, terms, temperature, message):
    objective = student()
    with pytest.raises(UserError, match=message):
        distill(objective, teacher or objective.model, terms, temperature)


def test_labels_are_no_term_of_pretraining():
    words = PretrainingObjective(AlbertPretrainer(BASE), "none")
    with pytest.raises(UserError, match="labels is not a term .*: logits, masked_words"):
        distill(words, AlbertPretrainer(BASE), {"labels": 1})


def test_nothing_is_left_behind():
    """After a recorded pass the model computes as before, and no gradient reaches the teacher."""
    objective, teacher = student(), AlbertClassifier(BASE, CLASSES)
    batch = make_batch()
    before = objective.model(batch)
    with tf.GradientTape() as tape:
        learned = distill(objective, teacher)
        ratios = learned.ratios(batch, training=True, seed=tf.constant([1, 2]))
        loss = tf.add_n([ratios[name].numerator for name in learned.losses])
    assert all(each is None for each in tape.gradient(loss, teacher.variables))
    assert objective.model.encoder.operations is teacher.encoder.operations is None
    np.testing.assert_array_equal(objective.model(batch), before)
    assert learned.model is objective.model and learned.metrics[-1] == "distill_relations"
