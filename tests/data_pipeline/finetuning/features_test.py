"""Texts and options become a model's inputs by google-research/albert's rules."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import ChoiceExample, TextExample
from data_pipeline.finetuning.features import (
    choice_ids,
    encode_choices,
    encode_texts,
    fill_blank,
    kept_lengths,
    label_ids,
    label_values,
)

SIZES = st.lists(st.tuples(*[st.integers(0, 40)] * 2, st.integers(2, 40)), min_size=1)


@given(SIZES)
def test_truncation_pops_the_longer(sizes):
    expected = []
    for length_a, length_b, limit in sizes:
        while length_a + length_b > limit:
            if length_a > length_b:
                length_a -= 1
            else:
                length_b -= 1
        expected.append((length_a, length_b))
    found = kept_lengths(*np.array(sizes).T)
    assert list(zip(*(lengths.tolist() for lengths in found))) == expected


def example(text_a, text_b=None, label=None):
    return TextExample("0", text_a, text_b, label, "data.tsv", 3)


def sequence(tokenizer, first, second, length):
    """[CLS] first [SEP] second [SEP] of lists of ids, as inputs."""
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id]
    types = [0] * len(ids)
    if second is not None:
        ids += [*second, tokenizer.sep_id]
        types += [1] * (len(second) + 1)
    padding = [0] * (length - len(ids))
    return ids + padding, [1] * len(ids) + padding, types + padding


def rows_of(inputs):
    return list(zip(*(values.tolist() for values in inputs.values())))


@pytest.mark.parametrize("kind", ["tokenizer", "wordpiece"])
def test_texts(kind, request):
    tokenizer = request.getfixturevalue(kind)
    long = "one two three four five six seven eight nine ten"
    pairs = [("A text", "and another"), ("single", None), ("", "b"), ("a", "\u0301 "), (long, long)]
    pairs += [(long, "b"), ("a", long), (long, None), ("", ""), (long, "four five six")]
    expected = []
    for text_a, text_b in pairs:
        first, second = tokenizer.encode(text_a), tokenizer.encode(text_b or "")
        while len(first) + len(second) > 12 - (3 if second else 2):
            (first if len(first) > len(second) else second).pop()
        expected.append(sequence(tokenizer, first, second or None, 12))
    found = encode_texts([example(*pair) for pair in pairs], tokenizer, 12)
    assert rows_of(found.inputs()) == expected
    assert found.max_seq_length == 12 and len(found) == len(pairs)
    assert len(encode_texts([], tokenizer, 12)) == 0


def test_the_shortest_length(tokenizer):
    text = "one two three"
    found = encode_texts([example(text, text)], tokenizer, 5)
    first = tokenizer.encode(text)[:1]
    assert rows_of(found.inputs()) == [sequence(tokenizer, first, first, 5)]
    with pytest.raises(UserError, match="max_seq_length should be at least 5; received 4"):
        encode_texts([example("a")], tokenizer, 4)


def test_blanks():
    assert fill_blank("She _ home.", "went") == "She went home."
    assert fill_blank("Where?", "Here.") == "Where? Here."
    assert fill_blank("_ and _", "a_b") == "a_b and a_b", "every blank, as in the reference"
    low_lines = [chr(i) for i in range(0x20000) if "_" in unicodedata.normalize("NFKD", chr(i))]
    assert len(low_lines) == 7
    assert [fill_blank(f"x {line}", "y") for line in low_lines] == ["x y"] * 7


def choice(context, question, *options, label=None):
    return ChoiceExample("0", context, question, options, label, "", "dev/1.txt", 2)


@pytest.mark.parametrize("kind", ["tokenizer", "wordpiece"])
def test_choices(kind, request):
    tokenizer = request.getfixturevalue(kind)
    context = "The old house\nwas quiet before winter came, and nobody knew how many birds sang."
    examples = [
        choice(context, "The _ was quiet", "house", "sea"),
        choice("Few words", "What is so very long that it is cut at its beginning?", "this", ""),
        choice("", "a", "b", "c d e f g h i j k l m n o p"),
    ]
    expected = []
    for item in examples:
        rows = []
        for option in item.options:
            last = tokenizer.encode(fill_blank(item.question, option))[-6:]
            first = tokenizer.encode(item.context)[: 16 - 3 - len(last)]
            rows.append(sequence(tokenizer, first, last, 16))
        expected.append(tuple([list(values) for values in zip(*rows)]))
    found = encode_choices(examples, tokenizer, 16, 6)
    assert rows_of(found.inputs()) == expected
    assert found.num_choices == 2 and len(found) == 3
    assert found.inputs()["input_mask"].shape == (3, 2, 16)


def test_sizes_of_choices_are_checked(tokenizer):
    examples = [choice("a", "b", "c", "d"), choice("a", "b", "c")]
    with pytest.raises(UserError, match=r"dev/1.txt:2: expected 2 options .* found 1"):
        encode_choices(examples, tokenizer, 256)
    with pytest.raises(UserError, match=r"max_qa_length should be from 1 to 127, .* received 128"):
        encode_choices(examples[:1], tokenizer, 131, 128)
    with pytest.raises(UserError, match=r"from 1 to 12, .* max_seq_length 16 .* received 0"):
        encode_choices(examples[:1], tokenizer, 16, 0)
    shortest = encode_choices([choice("a " * 20, "b", "c")], tokenizer, 5, 1).inputs()
    assert shortest["input_type_ids"].tolist() == [[[0, 0, 0, 1, 1]]]
    with pytest.raises(UserError, match=r"from 1 to 0, .* max_seq_length 4 .* received 0"):
        encode_choices(examples[:1], tokenizer, 4)


def test_the_default_keeps_128_pieces_of_question_and_option(tokenizer):
    for length, kept in ((256, 128), (132, 128), (131, 127), (20, 16)):
        long = [choice("a " * 9, "b " * 300, "c")]
        inputs = encode_choices(long, tokenizer, length).inputs()
        assert inputs["input_type_ids"].sum() == kept + 1


def test_labels():
    examples = [example("a", label="b"), example("a", label="B"), example("a", label="b")]
    ids = label_ids(examples, ["B", "b"])
    assert ids.tolist() == [1, 0, 1] and ids.dtype == np.int32
    with pytest.raises(UserError, match=r"data.tsv:3: found the label 'B', not one of b, c"):
        label_ids(examples, ["b", "c"])
    with pytest.raises(UserError, match=r"data.tsv:3: found no label, not one of b"):
        label_ids([example("a")], ["b"])


def test_values():
    values = label_values([example("a", label=2.5), example("a", label=3)])
    assert values.tolist() == [2.5, 3.0] and values.dtype == np.float32
    for wrong in (None, "2.5", float("nan")):
        with pytest.raises(UserError, match=r"data.tsv:3: expected a number as label, found"):
            label_values([example("a", label=wrong)])


def test_answers():
    ids = choice_ids([choice("a", "b", "c", "d", label=number) for number in (1, 0)])
    assert ids.tolist() == [1, 0] and ids.dtype == np.int32
    with pytest.raises(UserError, match=r"dev/1.txt:2: found no answer"):
        choice_ids([choice("a", "b", "c")])
