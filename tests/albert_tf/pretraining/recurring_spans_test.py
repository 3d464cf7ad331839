"""The objective of recurring spans as a user runs it: a folder whose head of spans fine-tuning on
SQuAD begins with, and that other programs take as any other. Interruptions: schedules_test.py.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertPretrainer, AlbertSpanLabeler, MaskFiller, from_preset
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.models import AlbertSpanPretrainer
from albert_tf.pretraining import open_records
from albert_tf.pretraining.objectives import objective_of, span_baselines
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer

STATIC_RECORDS = Path(__file__).parents[2] / "goldens" / "earlier_folders" / "records" / "static"
FLAGS = ("--objective=recurring_spans", "--span_mask_share=0.2")


@pytest.fixture(scope="module")
def records(work) -> str:
    """Dynamic records of text whose words come back."""
    rng, words = np.random.default_rng(0), ["cat", "dog", "sun", "red", "hat", "sea"]
    lines = [" ".join(rng.choice(words, 6)) for _ in range(200)]
    lines = [line + " ." if n % 9 else "" for n, line in enumerate(lines)]
    corpus = work / "again.txt"
    corpus.write_text("\n".join(lines), encoding="utf-8")
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))
    settings = PretrainingSettings(max_seq_length=32)
    create_pretraining_data(Corpus(str(corpus)), str(work / "again"), tokenizer, settings)
    return str(work / "again")


@pytest.fixture
def train(records, pretrain):
    """(folder, *flags, other flags by name) -> the output of a run that ends well."""

    def run(folder, *flags: str, **others: object) -> str:
        data = {"train_data": records, "eval_data": records, "output_dir": folder}
        ended = pretrain(*FLAGS, *flags, **data, **others)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture
def run(train, eagerly, tmp_path_factory):
    """The folder of a short run, which is made once; `shown.txt` is what it printed."""
    folder = tmp_path_factory.getbasetemp() / "a_run_of_recurring_spans"
    if not (folder / "shown.txt").exists():
        with eagerly():
            shown = train(folder, num_train_steps=2, num_warmup_steps=0)
        (folder / "shown.txt").write_text(shown, encoding="utf-8")
    return folder


def test_a_run_says_what_it_learned_and_what_for(run):
    shown = (run / "shown.txt").read_text(encoding="utf-8")
    assert "(ln V + ln 2 + ln S)" in shown and "any token" in shown and "--task=squad1.1" in shown
    metadata = native.read_metadata(str(run / "model"))
    assert (metadata["task"], metadata["span_mask_share"]) == ("span_pretraining", 0.2)


def test_its_head_of_spans_is_where_squad_begins(run, capsys):
    folder = str(run / "model")
    pretrained = native.load_model(folder)
    assert isinstance(pretrained, AlbertSpanPretrainer)
    labeler = from_preset(folder, AlbertSpanLabeler)
    assert f"The span head starts with the weights in {folder}." in capsys.readouterr().out
    for part in ("encoder", "span"):
        left, right = (getattr(model, part).get_weights() for model in (pretrained, labeler))
        for one, other in zip(left, right, strict=True):
            np.testing.assert_array_equal(one, other)
    plain = from_preset(folder, AlbertPretrainer)
    np.testing.assert_array_equal(plain.masked_lm.output_bias, pretrained.masked_lm.output_bias)


def test_a_head_that_was_fine_tuned_is_new_again(tiny_config, tmp_path, capsys):
    native.save(AlbertSpanLabeler(tiny_config), str(tmp_path / "squad"), {})
    from_preset(str(tmp_path / "squad"), AlbertSpanLabeler)
    assert not capsys.readouterr().out


def test_its_folder_fills_masks_and_is_converted(train, run, tmp_path, result_of, eagerly, capsys):
    folder = str(run / "model")
    assert MaskFiller(folder)("the [MASK]", top_k=1)
    output = str(tmp_path / "huggingface")
    flags = (f"--input={folder}", "--format=huggingface", f"--output={output}")
    made = result_of("albert_tf.convert", *flags)
    assert made.returncode == 0, made.stderr
    assert "the span head is left out" in made.stdout
    capsys.readouterr()
    expected = native.load_model(folder).without_spans()
    for kind in (AlbertPretrainer, AlbertSpanPretrainer):
        same = from_preset(output, kind)
        for left, right in zip(same.variables, expected.variables):  # A head of spans comes last.
            np.testing.assert_array_equal(left, right)
    assert "and new: span/logits/kernel, span/logits/bias" in capsys.readouterr().err
    flags = {"init_checkpoint": folder, "num_train_steps": 1, "num_warmup_steps": 0}
    with eagerly():
        assert "and new:" not in train(tmp_path / "next", **flags)


def test_a_run_keeps_its_share(pretrain, run, records):
    result = pretrain(FLAGS[0], output_dir=run, train_data=records)
    assert result.returncode == 2 and "span_mask_share was 0.2 and is 0.06" in result.stderr


def test_padding_is_no_place_of_a_span(tiny_config):
    words, mask = np.ones([1, 4], np.int32), np.array([[1, 1, 0, 0]], np.int32)
    inputs = {"input_word_ids": words, "input_mask": mask, "masked_lm_positions": words[:, :1]}
    outputs = AlbertSpanPretrainer(tiny_config)(inputs)
    for name in ("start_logits", "end_logits"):
        logits = outputs[name][0].numpy()
        assert np.abs(logits[:2]).max() < 100 and logits[2:].max() < -1000


def test_static_records_are_refused():
    with pytest.raises(UserError, match="has static masks, but recurring spans must be hidden"):
        pretraining_dataset(str(STATIC_RECORDS), 8, training=False, span_mask_share=0.1)


def test_questions_are_a_function_of_seed_and_step(records, tiny_config):
    model = AlbertSpanPretrainer(tiny_config, span_mask_share=0.2)
    data = objective_of(model).data(open_records(records, batch_size=8))

    def batches(start=0, context=None, count=3):
        some = data.batches(start_step=start, input_context=context).take(count)
        return [{name: value.numpy() for name, value in each.items()} for each in some]

    whole = batches()
    assert sum(each["span_weights"].sum() for each in whole) > 24  # One in each example.
    for left, right in zip(batches(start=1, count=2), whole[1:], strict=True):
        for name, values in left.items():
            np.testing.assert_array_equal(values, right[name], err_msg=name)
    hosts = [batches(context=tf.distribute.InputContext(2, host, 2)) for host in (0, 1)]
    for number, each in enumerate(whole):
        for name, values in each.items():
            parts = [host[number][name] for host in hosts]
            np.testing.assert_array_equal(np.concatenate(parts), values, err_msg=name)


def test_baselines():
    found = span_baselines({"span_loss": 1.0}, mean_length=100)
    assert found["span_loss"][0] == pytest.approx(np.log(100))
    assert found["start_accuracy"] == (0.01, "any token") and not span_baselines({}, 100)
