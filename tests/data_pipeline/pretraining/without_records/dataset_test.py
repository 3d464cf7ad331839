"""Examples from a tf.data.Dataset of text: those of the program, whatever the parallelism."""

import dataclasses
import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.errors import UserError
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.display import Distributions
from data_pipeline.pretraining.dynamic_masking import DynamicMasking
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.without_records import dataset
from data_pipeline.pretraining.without_records.dataset import (
    pretraining_batches,
    pretraining_examples,
)
from data_pipeline.records import features, record_folder

ROOT = Path(__file__).parents[4]
S = 64
STATIC = PretrainingSettings(max_seq_length=S, dupe_factor=2, masking="static")
DYNAMIC = PretrainingSettings(max_seq_length=S, dupe_factor=2, masking="dynamic")


def dataset_of(texts):
    return tf.data.Dataset.from_tensor_slices(texts)


def columns_of(examples):
    """All examples as arrays [R, n]."""
    parts = list(examples.batch(4096).as_numpy_iterator())
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def measured(batches, mask_id):
    found, lengths = Distributions(mask_id), []
    for batch in batches.as_numpy_iterator():
        found.add(batch)
        lengths += batch["input_mask"].sum(axis=1)[batch["example_weights"] > 0].tolist()
    labels = max(1, found.labels)
    figures = {
        "records": found.records / 5000,
        "mask rate": found.labels / found.tokens,
        "[MASK]": found.masked / labels,
        "same": found.same / labels,
        "swapped": found.swapped / found.records,
        **{f"runs of {i + 1}": count / found.runs.sum() for i, count in enumerate(found.runs)},
        **{f"eighth {i}": count / labels for i, count in enumerate(found.parts)},
        **{f"length above {n}": np.mean(np.array(lengths) > n) for n in (8, 16, 32, 63)},
    }
    return figures, found.records


def made_once(examples):
    """The same examples from memory, of which a part can be read without making all."""
    return tf.data.Dataset.from_tensor_slices(columns_of(examples))


@pytest.fixture(scope="module")
def examples(documents_text, tokenizer):
    return made_once(pretraining_examples(dataset_of(documents_text), tokenizer, STATIC))


def test_examples_are_distributed_as_the_records_of_the_program(examples, records_dir, tokenizer):
    """records_dir: the same text, settings and seed. Both are samples; the limits are 4 sigma."""
    batches = pretraining_batches(examples, 1, tokenizer, STATIC)
    batches = batches.unbatch().batch(256)
    assert batches.element_spec.keys() == pretraining_dataset(records_dir, 1).element_spec.keys()
    found, count = measured(batches, tokenizer.mask_id)
    program = pretraining_dataset(records_dir, 256, training=False)
    expected, _ = measured(program, tokenizer.mask_id)
    assert count > 4000
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=4 * np.sqrt(0.5 / count)), name


def test_static_examples_mask_whole_words(examples):
    for row in examples.take(400).as_numpy_iterator():
        is_label = np.zeros(S + 1, bool)
        is_label[row["masked_lm_positions"][row["masked_lm_weights"] > 0]] = True
        inside = np.flatnonzero((row["token_boundary"] == 0) & (row["input_mask"] > 0))
        assert np.all(is_label[inside] == is_label[inside - 1]), "a word is masked as a whole"
        assert not is_label[0] and is_label.sum() <= STATIC.max_predictions_per_seq


@pytest.fixture(scope="module")
def few(documents_text):
    return documents_text[:300]


def test_any_number_of_threads_gives_the_same_examples(few, tokenizer, monkeypatch):
    monkeypatch.setattr(dataset, "BLOCK_BYTES", 20_000)  # Many blocks.
    found = []
    for threads in (1, 8):
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        options.experimental_optimization.inject_prefetch = threads > 1
        data = pretraining_examples(dataset_of(few), tokenizer, STATIC).with_options(options)
        found.append(columns_of(data))
    assert len(found[0]["input_ids"]) > 500
    assert_equal(*found)


@pytest.fixture(scope="module")
def dynamic_examples(documents_text, tokenizer):
    return made_once(pretraining_examples(dataset_of(documents_text), tokenizer, DYNAMIC))


def test_dynamic_examples_are_the_static_ones_without_masks(examples, dynamic_examples, tokenizer):
    static, dynamic = columns_of(examples), columns_of(dynamic_examples)
    schema = features.pretraining_schema("dynamic", S, DYNAMIC.max_predictions_per_seq)
    assert set(dynamic) == {feature.name for feature in schema}
    tokens = static["input_ids"].copy()
    rows, places = np.nonzero(static["masked_lm_weights"])
    tokens[rows, static["masked_lm_positions"][rows, places]] = static["masked_lm_ids"][
        rows, places
    ]
    assert len(tokens) == len(dynamic["token_ids"]) > 4000
    for row in range(0, len(tokens), 7):
        text, length_a = dynamic["token_ids"][row], int(dynamic["num_tokens_a"][row, 0])
        segments = [text[:length_a], text[length_a : np.count_nonzero(text)]]
        if static["next_sentence_labels"][row, 0]:
            segments.reverse()
        sep = [tokenizer.sep_id]
        whole = np.concatenate([[tokenizer.cls_id], segments[0], sep, segments[1], sep])
        np.testing.assert_array_equal(tokens[row, : len(whole)], whole)
        assert static["input_mask"][row].sum() == len(whole)


def test_dynamic_batches_are_masked_by_seed_and_step(dynamic_examples, tokenizer):
    few = dynamic_examples.take(32)

    def masks(**options):
        batches = pretraining_batches(few, 16, tokenizer, DYNAMIC, **options)
        return [batch["masked_lm_positions"].tolist() for batch in batches.as_numpy_iterator()]

    first, second = masks()
    assert first != second
    assert masks(seed=1)[0] != first
    few = dynamic_examples.take(32).skip(16)
    assert masks(start_step=1) == [second]


def test_hosts_mask_their_own_rows_only(dynamic_examples, tokenizer, monkeypatch):
    """Together they have the rows of one host."""
    few, sizes, mask = dynamic_examples.take(30), [], DynamicMasking.__call__

    def spy(self, columns, *rest):
        sizes.append(columns["num_tokens_a"].shape[0])
        return mask(self, columns, *rest)

    def batches(**options):
        found = pretraining_batches(few, 15, tokenizer, DYNAMIC, seed=2, **options)
        return list(found.as_numpy_iterator())

    monkeypatch.setattr(DynamicMasking, "__call__", spy)
    alone = batches()
    hosts = [batches(input_context=tf.distribute.InputContext(2, host)) for host in range(2)]
    assert sizes == [15, 7, 8]
    for whole, *parts in zip(alone, *hosts, strict=True):
        for name, values in whole.items():
            together = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(together, values, err_msg=name)


def test_next_sentence_pairs_find_another_document(few, tokenizer, monkeypatch):
    """Documents of more than a block have neighbors all the same."""
    monkeypatch.setattr(dataset, "BLOCK_BYTES", 10)
    settings = dataclasses.replace(DYNAMIC, sentence_objective="nsp")
    found = columns_of(pretraining_examples(dataset_of(few[:200]), tokenizer, settings))
    labels = found["next_sentence_labels"]
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(labels))


def test_raw_text_has_the_sentences_of_the_program(tmp_path, few, tokenizer):
    raw = ["One sentence. Another one?\nA paragraph\0here.\n\n| -- | -- |\nIt ends. " + few[0]]
    raw += ["", "Caf\u00e9 in Paris. " * 3, few[1].replace("\n", "\n\n")]
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in raw), encoding="utf-8")
    lines = ["\n".join(sentences) for sentences in read_documents(Corpus(str(path)))]
    assert len(lines) == 3 and lines[0].startswith("One sentence.\nAnother one?\nA paragraph")
    settings = dataclasses.replace(DYNAMIC, max_seq_length=16)
    lines.insert(1, "")  # Where blocks are cut depends on the number of documents.
    assert_equal(
        columns_of(pretraining_examples(dataset_of(raw), tokenizer, settings, language="en")),
        columns_of(pretraining_examples(dataset_of(lines), tokenizer, settings)),
    )


@pytest.mark.parametrize(
    "data, says",
    [
        (tf.data.Dataset.from_tensors(["a", "b"]), "do not batch it"),
        (tf.data.Dataset.from_tensors({"text": "a"}), 'page\\["text"\\]'),
        (tf.data.Dataset.range(3), "scalar strings; received TensorSpec"),
    ],
)
def test_what_is_no_text_is_refused(data, says, tokenizer):
    with pytest.raises(UserError, match=says):
        pretraining_examples(data, tokenizer, STATIC)


def test_text_without_examples(tokenizer):
    assert not list(pretraining_examples(dataset_of(["", "word", "\n\n"]), tokenizer, DYNAMIC))


def test_the_worked_example_of_the_docs(tmp_path, vocab_file, tokenizer, monkeypatch, capsys):
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    section = text[text.index("## From a tf.data.Dataset") :].split("\n## ")[0]
    first, second = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    shutil.copy(vocab_file, tmp_path / "30k-clean.model")
    monkeypatch.chdir(tmp_path)
    exec(compile(first + second, "docs/data.md", "exec"), {})
    output = capsys.readouterr().out
    manifest = record_folder.verify_records(str(tmp_path / "records"), full=True)
    assert f"{manifest['num_records']} records with masked n-grams" in output
    assert manifest["num_records"] >= 10 and "loss " in output
    [batch] = itertools.islice(
        pretraining_dataset(str(tmp_path / "records"), 8, vocab_fingerprint=tokenizer.fingerprint),
        1,
    )
    assert batch["masked_lm_weights"].numpy().sum() >= 8
