"""From every format to every other, through the binary; what is lost is said."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf.checkpoints import formats, huggingface, native
from albert_tf.errors import UserError
from albert_tf.models import (
    AlbertClassifier,
    AlbertMultipleChoice,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
)
from albert_tf.variable_names import variable_name

GOLDENS = Path(__file__).parents[1] / "goldens"


@pytest.fixture
def convert(result_of):
    """Arguments -> what the program says."""
    return functools.partial(result_of, "albert_tf.convert")


def load(path: Path):
    source = formats.recognize(str(path))
    model = source.make_model(source.config())
    lost = source.load(model, formats.Allowed(formats.WITHOUT_PAIRS))
    return model, lost


def test_once_around_all_formats(convert, tmp_path):
    """google -> huggingface -> native -> google: the same weights, file by file."""
    steps = [GOLDENS / "google_tiny_groups", *(tmp_path / name for name in "abc")]
    kinds = ("huggingface", "native", "google")
    for before, after, kind in zip(steps, steps[1:], kinds):
        result = convert(f"--input={before}", f"--output={after}", f"--format={kind}")
        assert result.returncode == 0, result.stderr
        assert "80 variables, 39,018 parameters" in result.stdout
        assert "outputs differ by 0.0e+00" in result.stdout
        software = {"huggingface": "transformers", "google": "google-research/albert"}.get(kind)
        assert software is None or f"80 tensors as {software} has them" in result.stdout
    first, last = (
        tf.train.load_checkpoint(str(folder / "model.ckpt")) for folder in (steps[0], steps[-1])
    )
    assert first.get_variable_to_shape_map() == last.get_variable_to_shape_map()
    for name in first.get_variable_to_shape_map():
        np.testing.assert_array_equal(first.get_tensor(name), last.get_tensor(name))


def test_half_precision_is_half_the_file(convert, tmp_path):
    source = GOLDENS / "google_tiny_groups"
    for name, arguments in (("whole", []), ("half", ["--dtype=float16"])):
        result = convert(
            f"--input={source}", f"--output={tmp_path / name}", "--format=huggingface", *arguments
        )
        assert result.returncode == 0, result.stderr
    whole, half = (
        safetensors.numpy.load_file(str(tmp_path / name / "model.safetensors"))
        for name in ("whole", "half")
    )
    assert {value.dtype.name for value in half.values()} == {"float16"}
    assert half.keys() == whole.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(half[name], value.astype(np.float16))
    model, lost = load(tmp_path / "half")
    assert not lost and {variable.dtype for variable in model.variables} == {tf.float32}


def test_a_weight_that_half_precision_cannot_hold(tiny_config, tmp_path):
    model = AlbertClassifier(tiny_config, 3)
    model.variables[0][0, 0].assign(70000.0)
    with pytest.raises(UserError, match=r"7e\+04; the maximum of float16 is 65504"):
        huggingface.save(model, str(tmp_path), dtype="float16")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "make",
    [lambda config: AlbertClassifier(config, 3), AlbertSpanLabeler, AlbertSpanLabelerV2],
    ids=["classifier", "spans", "spans of version 2"],
)
def test_fine_tuned_heads_of_google_are_recognized(convert, tiny_config, tmp_path, make):
    model = make(tiny_config)
    native.save(model, str(tmp_path / "model"), {})
    result = convert(f"--input={tmp_path}/model", f"--output={tmp_path}/out", "--format=google")
    assert result.returncode == 0, result.stderr
    copy, lost = load(tmp_path / "out")
    assert type(copy) is type(model)
    for left, right in zip(model.variables, copy.variables):
        if variable_name(right) not in lost:
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", ["regression", "multiple_choice"])
def test_a_head_of_one_output_is_read_back_as_what_it_is(convert, tiny_config, tmp_path, kind):
    """A checkpoint of google-research does not say which of the two it has."""
    one_output = {"regression": AlbertClassifier(tiny_config, 1)}
    model = one_output.get(kind) or AlbertMultipleChoice(tiny_config)
    native.save(model, str(tmp_path / "model"), {})
    result = convert(f"--input={tmp_path}/model", f"--output={tmp_path}/out", "--format=google")
    assert "outputs differ by 0.0e+00" in result.stdout
    assert "read as a regression" not in result.stdout + result.stderr


def test_what_the_input_lacks_is_named(convert, tmp_path):
    source = GOLDENS / "hf_tiny" / "question_answering"
    result = convert(f"--input={source}", f"--output={tmp_path}/out", "--format=native")
    assert "in the input, initialized at random: encoder/pooler/kernel, encoder/pooler/bias" in (
        result.stdout
    )


def test_steps_of_sentence_transformers_are_named(convert, tmp_path):
    """A native folder has no place for them."""
    folder = tmp_path / "theirs"
    shutil.copytree(GOLDENS / "hf_bert" / "bert", folder)
    steps = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in (("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    ]
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    result = convert(f"--input={folder}", f"--output={tmp_path}/out", "--format=native")
    assert "so that sentence vectors will differ: the first token's, Normalize\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input={t}/nowhere", "--output={t}/out"], "nowhere does not exist"),
        (["--input={t}", "--output={t}/out"], "holds no model: neither model.json"),
        (["--input={g}/google_tiny", "--output={t}"], "exists. Name a new folder"),
        (["--input={t}/bare/model.ckpt", "--output={t}/out"], "Pass --config_file"),
        (
            ["--input={g}/google_tiny", "--output={t}/out", "--config_file={g}/x.json"],
            "x.json does not exist",
        ),
        (
            [
                "--input={g}/google_tiny",
                "--output={t}/out",
                "--config_file={g}/google_tiny_groups/albert_config.json",
            ],
            "missing: bert/encoder/transformer/group_0/inner_group_1",
        ),
        (
            ["--input={t}/other", "--output={t}/out", "--config_file={g}/hf_bert/bert/config.json"],
            "'roberta'",
        ),
        (
            ["--input={t}/mute", "--output={t}/out", "--config_file={g}/hf_bert/bert/config.json"],
            "mute has no config.json, the configuration of its weights. Copy it there.",
        ),
        (
            ["--input={g}/google_tiny", "--output={t}/out", "--dtype=float16", "--format=native"],
            "--format=native holds float32",
        ),
    ],
)
def test_mistakes_are_said_and_leave_nothing(convert, tmp_path, arguments, message):
    (tmp_path / "bare").mkdir()
    for file in (GOLDENS / "google_tiny").glob("model.ckpt.*"):
        shutil.copy(file, tmp_path / "bare")
    for name in ("other", "mute"):
        shutil.copytree(GOLDENS / "hf_bert" / "bert", tmp_path / name)
    (tmp_path / "mute" / "config.json").unlink()
    roberta = {"model_type": "roberta", "architectures": ["RobertaModel"]}
    (tmp_path / "other" / "config.json").write_text(json.dumps(roberta))
    before = sorted(tmp_path.rglob("*"))
    arguments = [argument.format(t=tmp_path, g=GOLDENS) for argument in arguments]
    result = convert("--format=huggingface", *arguments)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert message in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
