"""Any number of labels for a text: from a file to scores, answers and an export."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf

from albert_tf import AlbertClassifier
from albert_tf.checkpoints import huggingface, native
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import Classes, own_classes
from albert_tf.metrics import SCORERS
from albert_tf.models.objectives import MultiLabelObjective
from albert_tf.training.report import machine
from export.client import predict_rows, predict_saved_model
from export.litert import Runner, export_litert
from export.model_folder import model_kind
from export.predict import format_row
from export.server.rest import create_app
from export.tasks import export_model
from tests.export.conftest import loaded_store
from tests.finetuning_files import read_answers, rows, write_start

GOLDENS = Path(__file__).parent / "goldens"
FINETUNING = "albert_tf.run_finetuning"
LABELS = ("bug", "docs", "speed")
THRESHOLD = 0.52


def test_values_equal_transformers(tmp_path):
    """The numbers of transformers 4.57.6 and PyTorch, whose loss is BCEWithLogitsLoss:

    model = AlbertForSequenceClassification.from_pretrained(
        "tests/goldens/hf_tiny/sequence_classification",
        problem_type="multi_label_classification").eval()
    found = model(**inputs_of_hf_tiny, labels=torch.tensor(labels, dtype=torch.float32))
    found.loss.backward()
    torch.sigmoid(found.logits), found.loss, model.classifier.bias.grad
    """
    folder = tmp_path / "in"
    shutil.copytree(GOLDENS / "hf_tiny" / "sequence_classification", folder)
    config = json.loads((folder / "config.json").read_text())
    config["problem_type"] = "multi_label_classification"
    (folder / "config.json").write_text(json.dumps(config))
    model = huggingface.make_model(str(folder), huggingface.read_config(str(folder)))
    assert huggingface.load(model, str(folder)) == []
    assert model.multi_label and model.get_config()["multi_label"]
    with np.load(GOLDENS / "hf_tiny" / "inputs.npz") as file:
        names = {"input_word_ids": "input_ids", "input_mask": "attention_mask"}
        names["input_type_ids"] = "token_type_ids"
        batch = {ours: tf.constant(file[theirs], tf.int32) for ours, theirs in names.items()}
    batch["label_matrix"] = tf.constant([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    batch["example_weights"] = tf.ones([3])
    objective = MultiLabelObjective(model)
    with tf.GradientTape() as tape:
        ratios = objective.ratios(batch, training=False)
        loss = tf.divide(*ratios["binary_cross_entropy"])
    assert float(loss) == pytest.approx(0.6931689381599426, abs=1e-6)
    gradient = tape.gradient(loss, model.classification.logits.bias)
    expected = [0.07006706297397614, 0.052208852022886276, -0.04870680719614029]
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    probabilities = [
        [0.5485742688179016, 0.48486441373825073, 0.5178233981132507],
        [0.5384908318519592, 0.48751726746559143, 0.522972047328949],
        [0.5435384511947632, 0.4974980354309082, 0.5208432674407959],
    ]
    np.testing.assert_allclose(tf.sigmoid(model(batch)), probabilities, atol=1e-6)
    right = (np.array(probabilities) > 0.5) == batch["label_matrix"].numpy()
    assert float(tf.divide(*ratios["label_accuracy"])) == pytest.approx(right.mean())
    huggingface.save(model, str(tmp_path / "out"), LABELS)
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert written["problem_type"] == "multi_label_classification"
    assert written["id2label"] == {"0": "bug", "1": "docs", "2": "speed"}


def test_a_single_label_is_no_regression(result_of, tiny_config, tmp_path):
    """Converted both ways."""
    config = tiny_config.replace(vocab_size=1000, max_position_embeddings=32)
    folders = [tmp_path / name for name in ("in", "native", "huggingface")]
    huggingface.save(AlbertClassifier(config, 1, multi_label=True), str(folders[0]), ["bug"])
    shutil.copy(GOLDENS / "hf_tokenizer" / "spiece.model", folders[0])
    for before, after in itertools.pairwise(folders):
        given = f"--input={before}", f"--output={after}", f"--format={after.name}"
        result = result_of("albert_tf.convert", *given)
        assert result.returncode == 0, result.stderr
    metadata = native.read_metadata(str(folders[1]))
    assert metadata["multi_label"] and metadata["labels"] == ["bug"]
    read, written = (json.loads((folder / "config.json").read_text()) for folder in folders[::2])
    assert written["problem_type"] == read["problem_type"] == "multi_label_classification"
    assert written["id2label"] == read["id2label"] == {"0": "bug"}
    assert model_kind(metadata) == "classification"


def test_scores_equal_scikit_learn():
    rng = np.random.default_rng(1)
    for shape in ((40, 5), (7, 2), (3, 4)):
        gold, predicted = (rng.random(shape) < 0.3).astype(int), rng.integers(0, 2, shape)
        predicted[:, 0] = 0  # A label that is never predicted.
        micro, macro = (
            sklearn.metrics.f1_score(gold, predicted, average=average, zero_division=0)
            for average in ("micro", "macro")
        )
        subset = sklearn.metrics.accuracy_score(gold, predicted)
        found = SCORERS["multi_label"](gold.tolist(), predicted.tolist())
        assert found == {"f1_micro": micro, "f1_macro": macro, "subset_accuracy": subset}
    one = SCORERS["multi_label"]([[1], [0], [0], [1]], [[1], [1], [0], [0]])
    assert one == {"f1_micro": 0.5, "f1_macro": 0.5, "subset_accuracy": 0.5}
    none = SCORERS["multi_label"]([[0, 0]] * 2, [[0, 0]] * 2)
    assert none == {"f1_micro": 0.0, "f1_macro": 0.0, "subset_accuracy": 1.0}


@pytest.mark.parametrize(
    ("average", "threshold", "values", "probabilities"),
    [
        (None, None, [[1, 0, 0]], [[0.6, 0.4, 0.2]]),
        (None, 0.39, [[1, 1, 0]], [[0.6, 0.4, 0.2]]),
        ("logits", 0.39, [[1, 0, 0]], [[0.6, 0.38, 0.2]]),
        ("votes", 0.55, [[1, 1, 0]], [[1.0, 0.5, 0.0]]),
    ],
)
def test_averages_over_models(average, threshold, values, probabilities):
    shares = np.array([[[0.6, 0.2, 0.2]], [[0.6, 0.6, 0.2]]])
    members = [{"logits": np.log(each / (1 - each))} for each in shares]
    if average == "logits":
        odds = np.sqrt((0.2 / 0.8) * (0.6 / 0.4))
        probabilities[0][1] = odds / (1 + odds)
    task = own_classes(Classes(multi_label=True, threshold=threshold)).averaging(average)
    found = task.answer(None, members)
    assert found.values == values
    np.testing.assert_allclose(found.probabilities, probabilities, atol=1e-12)


def write_rows(path: Path, words: list[str], number: int, separator: str = ",") -> Path:
    """Texts that hold the words of their labels, of which the first has none and the second all."""
    draw = random.Random(path.name)
    lines = []
    for count in range(number):
        chosen = [[], list(LABELS)][count] if count < 2 else draw.sample(LABELS, draw.randrange(3))
        lines.append(f"{' '.join([*draw.sample(words, 3), *chosen])}\t{separator.join(chosen)}")
    path.write_text(rows("text\tlabel", *lines))
    return path


@pytest.fixture(scope="module")
def start(tmp_path_factory, few_words) -> Path:
    """A folder with a model to begin with, and the files of a task."""
    folder = tmp_path_factory.mktemp("start")
    write_start(folder, [*few_words, *LABELS])
    for name, number in (("train", 24), ("dev", 12)):
        write_rows(folder / f"{name}.tsv", few_words, number, " ; ")
    return folder


@pytest.fixture
def call(result_of, start, tmp_path, eagerly, monkeypatch):
    """(**flags) -> the finished program, whose run is tmp_path / "run"."""
    monkeypatch.setattr(machine, "matmul_flops_per_second", lambda *given: 1e11)

    def call(program: str = FINETUNING, **flags: object):
        given = {"task": "tsv", "multi_label": True, "output_dir": tmp_path / "run", **flags}
        if program == FINETUNING:
            given |= {"distribution": "one_device", "fast": "off"}
        return result_of(program, *(f"--{name}={value}" for name, value in given.items()))

    def train(**flags: object):
        model = {"config_file": start / "config.json", "vocab_file": start / "vocab.txt"}
        files = {f"{split}_file": start / f"{split}.tsv" for split in ("train", "dev")}
        sizes = {"max_seq_length": 16, "train_batch_size": 4, "num_train_steps": 8}
        return call(**{**files, **model, **sizes, "learning_rate": 0.01, **flags})

    call.train = train
    return call


def score_of(path: Path, separator: str) -> dict[str, float]:
    """scikit-learn's scores of a table of predictions."""
    table = read_answers(path)
    gold, predicted = (
        [[name in row[column].split(separator) for name in LABELS] for row in table]
        for column in ("label", "prediction")
    )
    for row, labels in zip(table, predicted):
        shares = [float(row[f"p({name})"]) for name in LABELS]
        assert labels == [share >= THRESHOLD for share in shares]
    return {
        "f1_micro": sklearn.metrics.f1_score(gold, predicted, average="micro", zero_division=0),
        "f1_macro": sklearn.metrics.f1_score(gold, predicted, average="macro", zero_division=0),
        "subset_accuracy": sklearn.metrics.accuracy_score(gold, predicted),
    }


def test_from_a_file_to_an_export(call, start, tmp_path):
    run, given = tmp_path / "run", {"label_separator": ";", "threshold": THRESHOLD}
    result = call.train(**given)
    assert result.returncode == 0, result.stderr
    assert "0.69 (ln 2)" in result.stdout and "3: bug, docs, speed" in result.stdout
    assert "--multi_label --label_separator=';'" in result.stdout
    (scored,) = json.loads((run / "results.json").read_text())["results"]
    assert scored["key"] == "f1_micro"
    scores = score_of(run / "predictions" / "tsv_dev.tsv", ";")
    assert scored["best"]["metrics"] == pytest.approx(scores)
    metadata = native.read_metadata(str(run / "model"))
    assert metadata["multi_label"] and metadata["threshold"] == THRESHOLD
    assert metadata["labels"] == list(LABELS)

    # Other commands know the threshold of the model, and may have another.
    dev = {"dev_file": start / "dev.tsv", "label_separator": ";"}
    assert call(mode="eval", **dev).returncode == 0
    assert json.loads((run / "scores.json").read_text())["scores"] == {"dev": scores}
    shown = call(mode="eval", **dev, threshold=0.9999).stdout
    assert "Every prediction is '(no label)', which is right for" in shown
    new = tmp_path / "new.tsv"
    new.write_text("text\nbug\nspeed docs\n")
    assert call(mode="predict", predict_file=new).returncode == 0
    predicted = read_answers(run / "predictions" / "tsv_predict.tsv")
    assert [row["text"] for row in predicted] == ["bug", "speed docs"]
    result = call(mode="predict", predict_file=new, multi_label=False)
    assert result.returncode == 2
    assert "holds a model that gives a text any number of labels. Give --task=tsv" in result.stderr
    average = call("albert_tf.run_ensemble", runs=run, **dev, output_dir=tmp_path / "ensemble")
    assert average.returncode == 0, average.stderr
    (whole,) = json.loads((tmp_path / "ensemble" / "ensemble.json").read_text())["results"]
    assert whole["metrics"] == pytest.approx(scores)

    check_export(run / "model", tmp_path / "topics", predicted)


def check_export(model_dir: Path, folder: Path, predicted: list[dict[str, str]]) -> None:
    """Every way to ask an export gives the answers of a table of predictions."""
    texts = [row["text"] for row in predicted]
    labels = [[each for each in row["prediction"].split(",") if each] for row in predicted]
    shares = [[float(row[f"p({name})"]) for name in LABELS] for row in predicted]
    exported = export_model(str(model_dir), str(folder), "classifier")
    for row, text, own, probabilities in zip(
        predict_rows(exported.path, [{"text": text} for text in texts]), texts, labels, shares
    ):
        assert row["labels"] == own and row["num_labels"] == len(own)
        np.testing.assert_allclose(row["probabilities"], probabilities, atol=1e-5)
        line = format_row({"text": text}, row)
        assert line.endswith(text) and all(label in line for label in own or ["(no label)"])
    width = max(map(len, labels))
    padded = [[*own, *[""] * (width - len(own))] for own in labels]
    rest = create_app(loaded_store({"topics": str(folder)})).test_client()
    body = rest.post("/v1/models/topics:predict", json={"instances": texts}).json
    assert [row["labels"] for row in body["predictions"]] == padded
    asked = {"signature_name": "classify", "examples": [{"text": text} for text in texts]}
    for row, probabilities in zip(
        rest.post("/v1/models/topics:classify", json=asked).json["results"], shares
    ):
        assert [name for name, _ in row] == list(LABELS)
        np.testing.assert_allclose([score for _, score in row], probabilities, atol=1e-5)


@pytest.mark.table
def test_labels_without_operations_of_tensorflow_text(tiny_config, tmp_path):
    """For LiteRT, and for servers that take ids alone; in few bits, too."""
    folder, words = str(tmp_path / "model"), str(GOLDENS / "hf_tokenizer" / "spiece.model")
    config = tiny_config.replace(vocab_size=1000, max_position_embeddings=32)
    model = AlbertClassifier(config, len(LABELS), multi_label=True)
    settings = {"lower": True, "rules": "google"}
    native.save(model, folder, {"labels": LABELS, "threshold": THRESHOLD}, words, settings)
    lite = export_litert(folder, str(tmp_path / "lite"), "classifier")
    assert lite.outputs["labels"] == "string[?, ?]" and lite.outputs["num_labels"] == "int32[?]"
    exported = export_model(
        folder, str(tmp_path / "ids"), "classifier", precision="int8", inputs="tokens"
    )
    runner = Runner((tmp_path / "lite" / "model.tflite").read_bytes())
    ids = tf.constant([[2, 9, 8, 3], [2, 5, 3, 0]])
    mask = tf.cast(ids > 0, tf.int32)
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * ids}
    for answer in (runner(**inputs), predict_saved_model(exported.path, inputs)):
        holds = np.asarray(answer["probabilities"]) >= THRESHOLD
        names = [[*itertools.compress(LABELS, row)] for row in holds]
        found = [[name.decode() for name in row if name] for row in np.asarray(answer["labels"])]
        assert found == names and np.asarray(answer["num_labels"]).tolist() == [*map(len, names)]


def test_a_label_that_nothing_was_trained_on(call, tmp_path):
    dev = tmp_path / "dev.tsv"
    dev.write_text(rows("text\tlabel", "x\tbug;docs", "y\tbug;doc"))
    result = call.train(label_separator=";", dev_file=dev)
    assert result.returncode == 2
    assert "dev.tsv:3: found the label 'doc', not one of bug" in result.stderr
    assert not (tmp_path / "run" / "model").exists()


def test_a_separator_that_is_never_found_is_said(start, capsys):
    task = own_classes(Classes(multi_label=True))
    train = task.read(TaskData(files={"train": str(start / "train.tsv")}), "train")
    assert "bug ; docs" in task.labels_in(train) or "docs ; bug" in task.labels_in(train)
    assert "train.tsv: no example has more than one label" in capsys.readouterr().out
