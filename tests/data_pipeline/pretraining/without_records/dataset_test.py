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
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.dynamic_masking import DynamicMasking
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.without_records import dataset
from data_pipeline.pretraining.without_records.dataset import (
    pretraining_batches,
    pretraining_examples,
    without_padding,
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


def made_once(examples):
    """The same examples from memory, of which a part can be read without making all."""
    return tf.data.Dataset.from_tensor_slices(columns_of(examples))


@pytest.mark.parametrize("masking", ["static", "dynamic"])
@pytest.mark.parametrize("objective", ["sop", "packed"])
def test_examples_of_a_block_are_the_records_of_the_program(
    documents_text, tokenizer, tmp_path, masking, objective
):
    packs = {"sentence_objective": "none", "pack_documents": True} if objective == "packed" else {}
    settings = dataclasses.replace(STATIC, masking=masking, **packs)
    texts = documents_text[:100]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8")
    corpus, folder = Corpus(f"{tmp_path}/a.txt", "lines"), str(tmp_path / "records")
    create_pretraining_data(corpus, folder, tokenizer, settings)
    manifest = record_folder.read_manifest(folder)
    assert manifest["num_shards"] == settings.dupe_factor
    records = tf.data.TFRecordDataset(record_folder.record_files(manifest)).batch(4096)
    expected = features.parse(features.schema_of(manifest), next(iter(records)))
    examples = pretraining_examples(dataset_of(texts), tokenizer, settings)
    found = next(iter(examples.batch(4096)))
    if masking == "dynamic":
        assert found["token_ids"].shape[1] == settings.max_num_tokens
        found = without_padding(found)
    assert len(expected["next_sentence_labels"]) > 400
    for name, values in expected.items():
        pair = (tf.nest.flatten(each, expand_composites=True) for each in (found[name], values))
        for one, other in zip(*pair, strict=True):
            np.testing.assert_array_equal(one, other, name)


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
    """In groups of 64; together they have the rows of one host."""
    few, sizes, mask = dynamic_examples.take(600), [], DynamicMasking.__call__

    def spy(self, columns, *rest):
        sizes.append(columns["num_tokens_a"].shape[0])
        return mask(self, columns, *rest)

    def batches(**options):
        found = pretraining_batches(few, 300, tokenizer, DYNAMIC, seed=2, **options)
        return list(found.as_numpy_iterator())

    monkeypatch.setattr(DynamicMasking, "__call__", spy)
    alone = batches()
    hosts = [batches(input_context=tf.distribute.InputContext(2, host)) for host in range(2)]
    assert sizes == [300, 192, 172]
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
