"""TSV rows become the reference's inputs; what is wrong with a file is named by file and line."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from data_pipeline.finetuning.classification import (
    classification_dataset,
    encode_classification,
    label_names,
    read_tsv,
    truncate_pair,
)

ROWS = 'text\tsecond\tlabel\nA good film\tIt is "fine"\tyes\n\nBad\t\tno\nThe end\tof it\tyes\n'


@pytest.fixture
def write_tsv(tmp_path):
    def write(content):
        path = tmp_path / "data.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def test_reading(write_tsv):
    examples = read_tsv(
        write_tsv(b"\xef\xbb\xbf" + ROWS.replace("\n", "\r\n").encode()), pair_column="second"
    )
    assert len(examples) == 3 and examples.lines == [2, 4, 5]
    assert examples.text_a == ["A good film", "Bad", "The end"]
    assert examples.text_b == ['It is "fine"', "", "of it"]
    assert label_names(examples) == ["no", "yes"]
    unlabeled = read_tsv(write_tsv(ROWS), label_column=None)
    assert unlabeled.labels is None and unlabeled.text_b is None


def test_whole_numbers_are_sorted_as_numbers(write_tsv):
    rows = "text\tlabel\n" + "".join(f"x\t{label}\n" for label in (10, 9, 0))
    assert label_names(read_tsv(write_tsv(rows))) == ["0", "9", "10"]


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "data.tsv:1: no column 'text'"),
        ("sentence\tlabel\nx\t1\n", "data.tsv:1: no column 'text'.*sentence, label"),
        ("text\tlabel\n", "no example"),
        ("text\tlabel\nx\t1\nbroken\n", "data.tsv:3: expected 2 .* found 1"),
        ("text\tlabel\nx\t \n", "data.tsv:2: the label"),
        (b"text\tlabel\nx\t1\n\xff\t1\n", "data.tsv:3: the text is not UTF-8"),
    ],
)
def test_bad_files_are_named_with_the_line(write_tsv, content, message):
    with pytest.raises(UserError, match=message):
        read_tsv(write_tsv(content))


def test_missing_files_and_labels(write_tsv, tmp_path, tokenizer):
    with pytest.raises(UserError, match=r"none.tsv does not exist"):
        read_tsv(str(tmp_path / "none.tsv"))
    with pytest.raises(UserError, match="is a folder"):
        read_tsv(str(tmp_path))
    examples = read_tsv(write_tsv("text\tlabel\nx\tyes\ny\tmaybe\n"))
    with pytest.raises(UserError, match=r"data.tsv:3: the label 'maybe' is not one of no, yes"):
        encode_classification(examples, tokenizer, 16, ["no", "yes"])
    with pytest.raises(UserError, match="two are needed"):
        label_names(read_tsv(write_tsv("text\tlabel\nx\tyes\n")))
    with pytest.raises(UserError, match="without labels"):
        label_names(read_tsv(write_tsv(ROWS), label_column=None))
    with pytest.raises(UserError, match="at least 5"):
        encode_classification(examples, tokenizer, 4)


def test_inputs(write_tsv, tokenizer):
    examples = read_tsv(write_tsv(ROWS), pair_column="second")
    arrays = encode_classification(examples, tokenizer, 24, ["no", "yes"])
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    a, b = tokenizer.encode("A good film"), tokenizer.encode('It is "fine"')
    expected = [cls, *a, sep, *b, sep]
    length = len(expected)
    assert arrays["input_word_ids"][0].tolist() == expected + [0] * (24 - length)
    assert arrays["input_mask"][0].tolist() == [1] * length + [0] * (24 - length)
    first = len(a) + 2
    assert arrays["input_type_ids"][0].tolist() == [0] * first + [1] * (length - first) + [0] * (
        24 - length
    )
    single = [cls, *tokenizer.encode("Bad"), sep]
    assert arrays["input_word_ids"][1].tolist() == single + [0] * (24 - len(single))
    assert not arrays["input_type_ids"][1].any(), "an empty second text is no second segment"
    assert arrays["label_ids"].tolist() == [1, 0, 1]
    assert {values.dtype for values in arrays.values()} == {np.dtype(np.int32)}
    assert "label_ids" not in encode_classification(examples, tokenizer, 24)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 40))
def test_truncation_pops_the_longer(length_a, length_b, limit):
    expected_a, expected_b = length_a, length_b
    while expected_a + expected_b > limit:
        if expected_a > expected_b:
            expected_a -= 1
        else:
            expected_b -= 1
    assert truncate_pair([0] * length_a, [0] * length_b, limit) == (expected_a, expected_b)


def rows(dataset, batches):
    return [
        int(word[0])
        for batch in dataset.take(batches)
        for word, weight in zip(batch["input_word_ids"].numpy(), batch["example_weights"].numpy())
        if weight
    ]


def test_batches():
    arrays = {
        name: np.arange(10, dtype=np.int32)[:, None] for name in ("input_word_ids", "input_mask")
    }
    arrays["label_ids"] = np.arange(10, dtype=np.int32)
    evaluation = list(classification_dataset(arrays, 4, training=False))
    assert [batch["example_weights"].numpy().sum() for batch in evaluation] == [4, 4, 2]
    assert np.concatenate([batch["label_ids"] for batch in evaluation])[:10].tolist() == list(
        range(10)
    )
    stream = rows(classification_dataset(arrays, 4, seed=3), 10)
    epochs = [stream[start : start + 10] for start in range(0, 40, 10)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    for step in (1, 2, 7):
        resumed = rows(classification_dataset(arrays, 4, seed=3, start_step=step), 3)
        assert resumed == stream[4 * step : 4 * step + 12]


@pytest.mark.parametrize("size", [4, 5])
def test_two_hosts_share_the_batches_of_one(size):
    arrays = {"input_word_ids": np.arange(11, dtype=np.int32)[:, None]}
    for training in (True, False):
        options = {"training": training, "seed": 3, "start_step": 1}
        alone = classification_dataset(arrays, size, **options)
        hosts = [
            classification_dataset(
                arrays, size, input_context=tf.distribute.InputContext(2, host), **options
            )
            for host in range(2)
        ]
        for whole, *parts in itertools.islice(zip(alone, *hosts), 5):
            assert len(parts[0]["example_weights"]) == size // 2
            for name, values in whole.items():
                together = np.concatenate([part[name] for part in parts])
                np.testing.assert_array_equal(together, values, err_msg=name)
