"""The best model of a run: what beats it, and that a resumed run goes on from its score."""

import math

import pytest

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder
from albert_tf.training.best_model import BestModel


@pytest.fixture
def make(tiny_config, tmp_path):
    """higher_is_better -> a BestModel of the metric "x" in the folder `best`."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    model = AlbertEncoder(tiny_config.replace(num_hidden_layers=1))

    def make(higher_is_better: bool) -> BestModel:
        vocabulary = str(tmp_path / "vocab.txt")
        metadata = {"labels": ["a"]}
        folder = str(tmp_path / "best")
        return BestModel(
            model, folder, "x", higher_is_better, metadata, vocabulary, {"lower": True}
        )

    return make


def test_what_is_kept_of_it(make, tmp_path):
    make(True).save_if_best(3, {"x": 0.5, "y": 2.0})
    folder = str(tmp_path / "best")
    assert native.read_metadata(folder) == {
        "task": "encoder",
        "labels": ["a"],
        "step": 3,
        "metrics": {"x": 0.5, "y": 2.0},
    }
    assert native.vocabulary_file(folder) == str(tmp_path / "best" / "vocab.txt")
    assert native.load_model(folder).config.num_hidden_layers == 1


def test_a_damaged_one_is_refused(make, tmp_path):
    """The run would end with it."""
    make(True).save_if_best(3, {"x": 0.5})
    for name in ("vocab.txt", "tokenizer_settings.json", "model.ckpt.data-00000-of-00001"):
        path = tmp_path / "best" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(UserError, match=f"{name} is damaged.*Or delete .*best: the run then"):
            make(True)
        path.write_bytes(content)
    make(True)


@pytest.mark.parametrize(
    ("higher_is_better", "kept"), [(True, [1, 1, 1, 4, 4]), (False, [1, 2, 2, 2, 5])]
)
def test_only_a_better_figure_replaces_it(make, tmp_path, higher_is_better, kept):
    steps = []
    for step, value in enumerate([0.5, 0.4, 0.4, 0.6, 0.3], start=1):
        # A new one each time, as after a resume.
        make(higher_is_better).save_if_best(step, {"x": value})
        steps.append(native.read_metadata(str(tmp_path / "best"))["step"])
    assert steps == kept


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([("a", 0.1), ("a", 0.2), ("b", 0.5), ("b", 0.6), ("a", 0.7)], [0, 0, 2, 2, 4]),
        ([(None, 0.1), ("a", 0.2)], [0, 0]),  # Of an earlier version, which did not say.
    ],
)
def test_a_score_on_other_data_does_not_count(make, tmp_path, scores, kept):
    steps = []
    for step, (data, value) in enumerate(scores):
        best = make(False)
        best._metadata = {"eval_data_sha256": data}
        best.save_if_best(step, {"x": value})
        steps.append(native.read_metadata(str(tmp_path / "best"))["step"])
    assert steps == kept


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_never_better(make, tmp_path, value):
    for higher_is_better in (True, False):
        make(higher_is_better).save_if_best(1, {"x": value})
    assert not (tmp_path / "best").exists()
    make(True).save_if_best(2, {"x": 0.0})
    make(True).save_if_best(3, {"x": value})
    assert native.read_metadata(str(tmp_path / "best"))["step"] == 2


def test_an_interrupted_replacement_is_settled_first(make, tmp_path):
    make(True).save_if_best(1, {"x": 0.5})
    (tmp_path / "best").rename(tmp_path / "best.old.partial")
    make(True).save_if_best(2, {"x": 0.4})
    assert native.read_metadata(str(tmp_path / "best"))["step"] == 1
    assert not (tmp_path / "best.old.partial").exists()


def test_a_model_of_undone_updates_is_in_nobodys_way(make, tmp_path):
    """The run went back to step 10, whatever was best after it."""
    make(True).save_if_best(20, {"x": 0.9})
    make(True).save_if_best(15, {"x": 0.5})
    assert native.read_metadata(str(tmp_path / "best"))["step"] == 15
