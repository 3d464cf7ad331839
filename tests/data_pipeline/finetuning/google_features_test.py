"""Features and examples equal those that google-research/albert itself made of GLUE and RACE.

The files hold texts of the benchmarks, so that they are not part of the repository: they are in the
folder `shared` beside it, and these tests are skipped without it.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import (
    choice_ids,
    encode_choices,
    encode_texts,
    fill_blank,
    label_ids,
    label_values,
)
from data_pipeline.finetuning.glue import GLUE_TASKS, read_glue
from data_pipeline.finetuning.race import read_race
from data_pipeline.tokenizers.normalization import normalize
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer

SHARED = Path(__file__).parents[3].parent / "shared"
GOLDENS = SHARED / "golden" / "finetuning"
VOCABULARY = SHARED / "data" / "spm" / "30k-clean.model"
pytestmark = pytest.mark.skipif(
    not (GOLDENS.is_dir() and VOCABULARY.exists()),
    reason="NOT compared with google-research/albert's own features: "
    f"{GOLDENS} or {VOCABULARY} is not there",
)
NAMES = {"input_ids": "input_word_ids", "input_mask": "input_mask", "segment_ids": "input_type_ids"}
# Task of the reference -> task and suffix of the splits here.
TASKS = {name: (name, "") for name in GLUE_TASKS if name not in ("mnli", "ax")}
TASKS |= {"mnli": ("mnli", "_matched"), "mismnli": ("mnli", "_mismatched")}
every_split = pytest.mark.parametrize("split", ["train", "dev", "test"])


@pytest.fixture(scope="module")
def tokenizers():
    return {
        name: SentencePieceTokenizer(str(VOCABULARY), lower)
        for name, lower in (("lower", True), ("cased", False))
    }


@pytest.fixture(scope="module")
def features():
    with np.load(GOLDENS / "classification" / "features.npz") as file:
        return dict(file)


def read(golden_task, split):
    task, suffix = TASKS[golden_task]
    name = split if split == "train" else split + suffix
    return read_glue(task, str(GOLDENS / "classification" / "glue"), name)


def json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@every_split
@pytest.mark.parametrize("golden_task", TASKS)
def test_examples_of_glue(golden_task, split):
    expected = json_lines(GOLDENS / "classification" / f"examples_{golden_task}_{split}.jsonl")
    examples = read(golden_task, split).examples
    assert len(examples) == len(expected) >= 23
    for example, row in zip(examples, expected):
        assert example.guid == row["guid"]
        assert normalize(example.text_a) == row["text_a"]
        assert (example.text_b and normalize(example.text_b)) == row["text_b"]
        # The reference gives a test example the first label; it has none.
        assert example.label == (None if split == "test" else row["label"])


def test_the_one_short_row_is_said():
    split = read("qqp", "train")
    assert len(split.skipped_lines) == 1 and "1 of 25 rows" in split.note


@every_split
@pytest.mark.parametrize(
    "golden_task, casing, length",
    [(task, "lower", length) for task in TASKS for length in (32, 128)]
    + [("cola", "cased", 128), ("mrpc", "cased", 128)],
)
def test_features_of_glue(golden_task, casing, length, split, features, tokenizers):
    prefix = f"{golden_task}/{split}/{casing}/{length}"
    examples = read(golden_task, split).examples
    arrays = encode_texts(examples, tokenizers[casing], length).inputs()
    for golden_name, name in NAMES.items():
        np.testing.assert_array_equal(arrays[name], features[f"{prefix}/{golden_name}"])
    assert [example.guid for example in examples] == features[f"{prefix}/guid"].tolist()
    if split == "test":
        return
    labels = GLUE_TASKS[TASKS[golden_task][0]].labels
    ids = label_values(examples) if labels is None else label_ids(examples, labels)
    np.testing.assert_array_equal(ids, features[f"{prefix}/label_ids"])
    assert ids.dtype == features[f"{prefix}/label_ids"].dtype


def test_hand_made_pairs(tokenizers):
    rows = json_lines(GOLDENS / "classification" / "edge.jsonl")
    assert len(rows) > 10
    for row in rows:
        example = TextExample("0", row["text_a"], row["text_b"], None, "edge", 1)
        encoded = encode_texts([example], tokenizers["lower"], row["max_seq_length"])
        for golden_name, name in NAMES.items():
            assert encoded.inputs()[name].tolist() == [row[golden_name]], row


@every_split
def test_examples_of_race(split, tmp_path):
    examples = read_race(str(GOLDENS / "race"), split).examples
    expected = json_lines(GOLDENS / "race" / f"examples_{split}.jsonl")
    assert len(examples) == len(expected)
    for example, row in zip(examples, expected):
        assert example.guid.rsplit("-", 1)[0] == row["id"]
        assert row["id"].startswith(example.group)
        assert normalize(example.context) == row["context"]
        endings = [
            fill_blank(normalize(example.question), normalize(option)) for option in example.options
        ]
        assert endings == row["endings"] and example.label == row["label"]
    # The reference's own files say the same.
    for level in ("middle", "high"):
        (tmp_path / split / level).mkdir(parents=True)
        source = GOLDENS / "race" / "RACE" / split / level / "all.txt"
        shutil.copy(source, tmp_path / split / level)
    again = read_race(str(tmp_path), split).examples
    assert [(e.guid, e.question, e.label, e.group) for e in again] == [
        (e.guid, e.question, e.label, e.group) for e in examples
    ]


@every_split
@pytest.mark.parametrize("length, max_qa_length", [(512, 128), (128, 16)])
def test_features_of_race(split, length, max_qa_length, tokenizers):
    examples = read_race(str(GOLDENS / "race" / "RACE"), split).examples
    arrays = encode_choices(examples, tokenizers["lower"], length, max_qa_length).inputs()
    with np.load(GOLDENS / "race" / "features.npz") as file:
        features = {
            name: file[f"{split}/{length}_{max_qa_length}/{name}"] for name in (*NAMES, "label_ids")
        }
    for golden_name, name in NAMES.items():
        np.testing.assert_array_equal(arrays[name], features[golden_name])
    np.testing.assert_array_equal(choice_ids(examples), features["label_ids"])
