"""Fine-tuning with a teacher: all forms of tasks, whole runs, stored answers, what is refused."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import Distillation, distill
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.finetuning.distillation import distilled
from albert_tf.finetuning.finetuned import load_finetuned, predict
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from albert_tf.finetuning.tasks.texts import ClassificationTask
from albert_tf.finetuning.training_examples import make_examples
from albert_tf.metrics import SCORERS
from albert_tf.models import AlbertClassifier
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.bert_family_test import GOLDENS
from tests.conformance_cases import SMALLEST
from tests.finetuning_cases import FORMS, LENGTHS, split_of
from tests.run_results import check_goes_on, check_tensors, tensors

LAST = f"last_model/{native.WEIGHTS_PREFIX}"
LABELS = ("long", "short")
TASK = ClassificationTask("mine", None, LABELS, SCORERS["cola"])
BERT = str(GOLDENS / "distillation" / "teacher")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_task(name, few_words, vocab_file):
    """A student that is its teacher has nothing to learn from it; another has, from each term."""
    task, tokenizer = FORMS[name], load_tokenizer(vocab_file)
    examples = make_examples(task, split_of(task, few_words, 6), tokenizer, LENGTHS)
    teacher, same, other = (
        task.new_model(SMALLEST, examples.labels, 0.1, packed=True) for _ in range(3)
    )
    for model in (teacher, other):
        for number, variable in enumerate(model.variables):
            seed = [number, model is teacher]
            variable.assign_add(0.1 * tf.random.stateless_normal(variable.shape, seed))
    same.set_weights(teacher.get_weights())
    arrays = examples.features.batch(np.arange(6), examples.features.max_seq_length)
    batch = {key: tf.constant(value) for key, value in arrays.items()}
    terms = dict.fromkeys(("logits", "labels", "cosine", "attention", "relations"), 1.0)
    for student, is_same in ((same, True), (other, False)):
        objective = distill(task.new_objective(student), teacher, terms)
        ratios = objective.ratios(batch, training=False)
        assert set(ratios) == set(objective.metrics)
        for key in ("logits", "cosine", "attention", "relations"):
            value = float(ratios[f"distill_{key}"].numerator)
            assert abs(value) < 1e-4 if is_same else value > 1e-6, key


@pytest.fixture
def train(tune, small_splits):
    """(name, teacher's settings, **settings) -> the results of a run in tmp_path / name."""
    return lambda name, teacher=None, **settings: tune(
        name, TASK, small_splits, teacher=teacher, **settings
    )


@pytest.fixture
def teacher(train, tmp_path, small_splits, one_device):
    """The folder of a run that has answered its training examples."""
    train("teacher")
    found = load_finetuned(str(tmp_path / "teacher" / "model"), TASK, one_device)
    predict(found, TaskData(splits=small_splits), ["train"], 4, str(tmp_path / "teacher"))
    return tmp_path / "teacher"


@pytest.mark.usefixtures("eager")
def test_a_run_goes_on_with_the_same_bits(train, teacher, tmp_path, capsys):
    """With dropout, and with the layer that is learned besides; the model folder lacks that."""
    terms = ("logits:2", "labels", "hidden:0.5", "relations:1")
    distillation = Distillation(str(teacher), terms, 3.0)
    again = functools.partial(train, "run", distillation, num_train_steps=4)
    first = again()
    shown = capsys.readouterr().out
    assert f"{teacher} (AlbertClassifier)\n" in shown and "depends on the teacher" in shown
    assert "2 logits, 1 labels, 0.5 hidden, 1 relations" in shown
    check_goes_on(again, first, tmp_path / "run")
    assert set(tensors(tmp_path / "run" / LAST)) == set(tensors(teacher / LAST))
    for other, message in (
        (None, "teacher was '.*' and is None"),
        (Distillation(str(teacher), terms), "temperature was 3.0 and is 2.0"),
    ):
        with pytest.raises(UserError, match=message):
            train("run", other, num_train_steps=4)


@pytest.mark.usefixtures("eager")
def test_stored_answers_and_a_teacher_of_another_family(
    train, teacher, small_splits, tmp_path, capsys
):
    """A run's outputs, the table of its predictions, and a BERT that transformers made."""
    outputs, table = f"{teacher}/outputs", f"{teacher}/predictions/mine_train.tsv"
    for name, source in (("outputs", outputs), ("table", table)):
        train(name, Distillation(source), learning_rate=0.001)
    check_tensors(tmp_path / "outputs" / LAST, tmp_path / "table" / LAST, 1e-3)
    assert f"{table} (stored)" in capsys.readouterr().out
    train("bert", Distillation(BERT, ("relations", "labels")))
    assert f"{BERT} (AlbertEncoder)" in capsys.readouterr().out
    small_splits["train"].examples.pop()
    with pytest.raises(UserError, match="are for other examples or classes"):
        train("run", Distillation(outputs))


def examples_of(task, few_words, vocab_file):
    tokenizer = load_tokenizer(vocab_file)
    examples = make_examples(task, split_of(task, few_words, 4), tokenizer, LENGTHS)
    return task.new_model(SMALLEST, examples.labels, 0.1, packed=True), examples, tokenizer


@pytest.mark.parametrize(
    ("task", "table", "expected"),
    [
        (
            TASKS["tsv"],
            "p(1)\tp(0)\n1\t0\n.5\t.5\n.2\t.8\n.25\t.75",
            [[-16.1181, 0], [-0.6931] * 2],
        ),
        (TASKS["sts-b"], "id\tprediction\na\t1.5\nb\t-2\nc\t0\nd\t7", [[1.5], [-2.0]]),
        (
            own_classes(Classes(multi_label=True)),
            "p(a)\tp(b)\n.5\t.75\n1\t0\n0\t0\n.5\t.5",
            [[0, 1.0986], [16.1181, -16.1181]],
        ),
    ],
)
def test_tables_of_answers(task, table, expected, few_words, vocab_file, tmp_path):
    (tmp_path / "answers.tsv").write_text(f"{table}\n")
    settings = Distillation(str(tmp_path / "answers.tsv"))
    student, examples, tokenizer = examples_of(task, few_words, vocab_file)
    learned, made = distilled(settings, task, student, examples, tokenizer)
    np.testing.assert_allclose(made.features.targets["teacher_logits"][:2], expected, atol=1e-3)
    arrays = made.features.batch(np.arange(4), made.features.max_seq_length)
    batch = {key: tf.constant(value) for key, value in arrays.items()}
    ratios = learned.objective.ratios(batch, training=False)
    assert learned.objective.losses == {"distill_logits": "example_weights"}
    assert np.isfinite(ratios["distill_logits"].numerator)


@pytest.mark.parametrize(
    ("task", "teacher", "terms", "message"),
    [
        ("tsv", "short.tsv", (), "short.tsv has 1 answers, and made up has 4 examples"),
        ("tsv", "odd.tsv", (), r"odd.tsv:2: expected probabilities; received \[0.5, 0.6\]"),
        ("tsv", "names.tsv", (), r"names.tsv:1: no column 'p\(0\)' \(answer of the teacher\)"),
        ("tsv", "good.tsv", ("relations",), "relations compares the layers of two models"),
        ("squad1.1", "short.tsv", (), "runs of --task=squad1.1 store no answer for each token"),
        ("tagging", "a,b", (), "runs of --task=tagging store no answer for each token"),
        ("tsv", "gone*", (), r"--teacher: gone\* is not a folder"),
        ("tsv", "nowhere,nowhere", (), "--teacher names nowhere twice"),
        ("tsv", "nowhere/outputs", (), "train.best.npz is missing. Store them: run_finetuning"),
        ("tsv", "albert-small-en", (), "another vocabulary than the student"),
        ("tsv", BERT, (), r"another task or of other classes \(AlbertClassifier"),
        ("squad1.1", BERT, ("logits",), "and the term logits needs its answers"),
        ("tsv", "nowhere", (), "nowhere holds no model"),
        ("mrpc", "qqp", (), "qqp holds a model for qqp, whose answers do not mean the same"),
    ],
)
def test_teachers_that_do_not_fit(
    task, teacher, terms, message, few_words, vocab_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.tsv").write_text("p(0)\tp(1)\n1\t0\n")
    (tmp_path / "good.tsv").write_text("p(0)\tp(1)\n" + "1\t0\n" * 4)
    (tmp_path / "odd.tsv").write_text("p(0)\tp(1)\n.5\t.6\n")
    (tmp_path / "names.tsv").write_text("no\tyes\n.5\t.5\n")
    (tmp_path / "nowhere").mkdir()
    about = {"labels": ["0", "1"], "finetuned_on": "qqp"}  # The classes of mrpc, too.
    native.save(AlbertClassifier(SMALLEST, 2), "qqp", about, vocab_file, {})
    student, examples, tokenizer = examples_of(TASKS[task], few_words, vocab_file)
    with pytest.raises(UserError, match=message):
        distilled(Distillation(teacher, terms), TASKS[task], student, examples, tokenizer)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"teacher": "t", "distillation": ("logits:0",)},
            "--distillation=logits:0 should be terms",
        ),
        ({"teacher": "t", "distillation": ("logits:x",)}, "with weights above 0, each term once"),
        ({"teacher": "t", "distillation": ("logits", "logits:2")}, "logits,logits:2 should be"),
        ({"teacher": "t", "distillation": ("attn:1",)}, "once, as in logits:5,cosine:1. Terms"),
        ({"teacher": "t", "temperature": 0.0}, "--temperature=0.0: expected a finite number above"),
        ({"teacher": ""}, "--teacher is empty"),
        ({"distillation": ("logits",)}, "--distillation needs a --teacher"),
        ({"temperature": 3.0}, "--temperature needs a --teacher"),
        ({"teacher": "t", "distillation": ("cosine",), "temperature": 3.0}, "the term logits, and"),
    ],
)
def test_settings_that_mean_nothing(values, message):
    with pytest.raises(UserError, match=message):
        Distillation(**values)
