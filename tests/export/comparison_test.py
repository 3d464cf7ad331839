"""An export beside its model in float32, on labeled data."""

import dataclasses
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.finetuning import finetuned
from data_pipeline.errors import UserError
from export import comparison, tasks
from export.comparison import Accuracy, Comparison, EvalSettings, Evaluation, differences
from export.encoding import encode_batch
from export.flags import comparison_lines
from export.model_folder import open_model
from export.probes import Probe
from export.tasks import TASKS, export_model
from tests.export.conftest import LABELS, METADATA, TAGS, rows
from tests.finetuning_files import ASKED, IMPOSSIBLE, write_files
from tests.finetuning_files import squad as squad_file

TEXTS = ("a cat", "the dog runs", "paris is the capital of france", "in 2010, 3.0", "water river")


def test_differences_are_the_largest_of_each_output_of_numbers():
    exact = [Probe("tokens", {}, {"x": np.array([1.0, 2.0]), "id": np.array([1])})]
    other = [Probe("tokens", {}, {"x": np.array([1.5, 1.0]), "id": np.array([2])})]
    assert differences(exact, other) == {"tokens.x": 1.0}
    lacking = [Probe("tokens", {}, {"id": np.array([2])})]  # Left to rounding, which decided.
    assert differences(exact, lacking) == {}


def tuned_folder(model_dirs, name, finetuned_on, folder, **metadata):
    """A copy of a model folder that says on what it was fine-tuned."""
    source, found = model_dirs[name], {"max_seq_length": 48, **METADATA.get(name, {})}
    model = native.load_model(source)
    settings = {"lower": True, "rules": "google"}
    metadata = {**found, "finetuned_on": finetuned_on, **metadata}
    native.save(model, str(folder), metadata, native.vocabulary_file(source), settings)
    return str(folder)


def table(path, labels):
    rows = (f"{text}\t{label}" for text, label in zip(TEXTS, labels, strict=True))
    path.write_text("\n".join(["text\tlabel", *rows]), encoding="utf-8")
    return str(path)


def tagged(path):
    lines = [f"{word} {TAGS[place % 3]}" for place, word in enumerate(["a", "cat", "in", "paris"])]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def squad(path):
    path.write_text(squad_file(ASKED, IMPOSSIBLE), encoding="utf-8")
    return str(path)


def race(path):
    return str(write_files(path, "race")["data_dir"])


# Task of export -> model, task of fine-tuning, what model.json needs, and makes its labeled data.
SCORED = {
    "classifier": ("classifier", "tsv", lambda p: table(p, ["red", "green", "blå", "red", "red"])),
    "regression": ("regression", "regression", lambda p: table(p, [0.5, 2, 3.5, 1, 4])),
    "question_answering": ("span_labeler_v2", "squad2.0", squad),
    "multiple_choice": ("multiple_choice", "race", race),
    "tagging": ("tagger", "tagging", tagged),
}


@pytest.mark.parametrize("task", rows(SCORED, "classifier", "question_answering"))
def test_a_signature_has_the_score_of_its_model(model_dirs, tmp_path, task):
    """The same rows, by the signature `tokens` of each task that has right answers."""
    assert TASKS[task].is_scored
    name, finetuned_on, make_data = SCORED[task]
    labels = {"labels": []} if finetuned_on == "squad2.0" else {}
    folder = tuned_folder(model_dirs, name, finetuned_on, tmp_path / "model", **labels)
    (tmp_path / "files").mkdir()
    loaded = open_model(folder, native.read_metadata(folder), None, str(tmp_path / "files"))
    settings = EvalSettings(make_data(tmp_path / "data"), max_accuracy_loss=0.0)
    evaluation = Evaluation(folder, loaded, settings)
    module, _ = TASKS[task].build(loaded)
    tokens = module.signatures()["tokens"]
    names = [spec.name for spec in tokens.input_signature]
    found = evaluation.accept(tokens, names, "float32")
    assert found.exported == pytest.approx(found.float32)
    assert found.examples >= 1


def test_the_other_tasks_have_no_right_answers():
    assert set(SCORED) == {task for task, each in TASKS.items() if each.is_scored}
    with pytest.raises(
        UserError, match=r"--task=masked_lm does not have.*--task=classifier or regr"
    ):
        tasks.check_scored("masked_lm")


@pytest.fixture(scope="module")
def perfect(model_dirs, vocabulary, tmp_path_factory):
    """A classifier's folder, and labels that it gives itself."""
    root = tmp_path_factory.mktemp("perfect")
    folder = tuned_folder(model_dirs, "classifier", "tsv", root / "model")
    model = native.load_model(folder)
    logits = model(encode_batch(vocabulary, TEXTS, 48), training=False).numpy()
    return folder, table(root / "dev.tsv", [LABELS[place] for place in logits.argmax(axis=1)])


def test_an_export_that_loses_too_much_leaves_what_there_was(perfect, tmp_path, monkeypatch):
    folder, file = perfect
    out = str(tmp_path / "out")
    allowed = EvalSettings(file, max_accuracy_loss=0.1)

    def export():
        return export_model(
            folder, out, "classifier", precision="int8", scored_on=allowed, inputs="tokens"
        )

    found = export()
    expected = Accuracy("accuracy", len(TEXTS), file, 1.0, 1.0)
    assert found.comparison.accuracy == expected

    def ruin(model, precision):
        """The likeliest label becomes the least likely one."""
        kernel = model.variables[-2]
        assert kernel.shape[1] == len(LABELS)
        kernel.assign(-kernel)

    monkeypatch.setattr(tasks, "store", ruin)
    with pytest.raises(UserError, match="is 0.0000 instead of 1.0000.* above .*=0.1"):
        export()
    assert os.listdir(out) == ["1"]


def test_an_undefined_score_is_refused(perfect, tmp_path, monkeypatch):
    folder, file = perfect
    loaded = open_model(folder, native.read_metadata(folder), None, str(tmp_path))
    evaluation = Evaluation(folder, loaded, EvalSettings(file, max_accuracy_loss=1.0))
    monkeypatch.setattr(evaluation, "score", lambda model: None)
    with pytest.raises(UserError, match="is 1.0000 in float32 and undefined in the export, so"):
        evaluation.accept(None, (), "int8")
    # A hundredth of a score in percent is 1.
    monkeypatch.setattr(evaluation, "score", lambda model: 0.5)
    for is_percent, allowed in ((True, 0.01), (False, 0.6)):
        monkeypatch.setattr(type(evaluation._found.task), "scores_are_percent", is_percent)
        evaluation._settings = EvalSettings(file, max_accuracy_loss=allowed)
        assert evaluation.accept(None, (), "int8").exported == 0.5
    monkeypatch.setattr(evaluation, "score", lambda model: None)
    evaluation._settings = EvalSettings(file)
    found = evaluation.accept(None, (), "int8")
    assert found.exported is None and found.float32 == 1.0
    compared = Comparison("int8", 8, {}, found)
    line = f"accuracy on {len(TEXTS)} examples: undefined, in float32 1.0000"
    assert line in comparison_lines(compared, 2)[-1]
    json.dumps(dataclasses.asdict(compared), allow_nan=False)  # As the manifest is written.


@pytest.mark.parametrize(
    ("finetuned_on", "path", "message"),
    [
        ("tsv", "nowhere.tsv", "--eval_file=.*nowhere.tsv does not exist"),
        ("tsv", ".", "fine-tuned on tsv, whose examples are read from a file"),
        ("sst-2", "dev.tsv", "fine-tuned on sst-2, whose examples are read from the folder"),
        (None, "dev.tsv", "needs a fine-tuned model"),
        ("topics", "dev.tsv", "fine-tuned on 'topics', a task of your own, whose files cannot"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    model_dirs, tmp_path, finetuned_on, path, message, monkeypatch
):
    (tmp_path / "dev.tsv").write_text("text\tlabel\na\tred\n")
    metadata = {"task": "classification", "labels": ["0", "1"]}
    if finetuned_on:
        metadata["finetuned_on"] = finetuned_on
    monkeypatch.setattr(finetuned.native, "read_metadata", lambda folder: metadata)
    loaded = SimpleNamespace(metadata=metadata, vocabulary=None)
    with pytest.raises(UserError, match=message):
        found = comparison._load(model_dirs["classifier"], loaded)
        comparison._source(found, str(tmp_path / path))
