"""The labels are balanced, no evaluation row is trained on, and names do not give labels away."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from demo import corpus
from demo.corpus import CorpusDocument
from demo.labeled_task import (
    TASK_SPLITS,
    Sizes,
    by_package,
    by_part,
    divide,
    first_task,
    names_package,
    without_repetitions,
)

SIZES = Sizes(classes=3, train=100, evaluation=20)


def documents(sources: int, per_source: int, sentences: int) -> list[CorpusDocument]:
    made = [
        CorpusDocument(
            f"package{s}",
            f"package{s}.m{d}",
            [f"Text {i} of {d} in {s}." for i in range(sentences)],
        )
        for s in range(sources)
        for d in range(per_source)
    ]
    return corpus.hold_out(made, 0.1)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_divide_keeps_units_whole_and_most_for_training(lengths, rows):
    units = [[f"{unit}.{i}" for i in range(length)] for unit, length in enumerate(lengths)]
    divided = divide(units, rows)
    kept = [text for texts in divided.values() for text in texts]
    assert sorted(kept) == sorted(text for unit in units for text in unit)
    homes = {
        name: {text.split(".")[0] for text in texts if text} for name, texts in divided.items()
    }
    assert sum(map(len, homes.values())) == len({unit for home in homes.values() for unit in home})
    assert len(divided["train"]) >= 0.8 * sum(lengths) - 1e-9


def test_packages_are_balanced_and_divided_by_document():
    docs = documents(sources=4, per_source=30, sentences=20)
    kind, task = first_task(docs, own_text=False, sizes=SIZES, seed=1)
    assert kind == "package"
    where = {text: doc.name for doc in docs for text in doc.sentences}
    modules = {name: {where[text] for _, text in task[name]} for name in TASK_SPLITS}
    assert not modules["train"] & modules["dev"] and not modules["train"] & modules["test"]
    assert not modules["dev"] & modules["test"]
    for name, count in (("train", 100), ("dev", 20), ("test", 20)):
        labels = [label for label, _ in task[name]]
        assert len(set(labels)) == 3
        assert {labels.count(label) for label in labels} == {count}
        assert all(where[text].startswith(f"{label}.") for label, text in task[name])
    assert first_task(docs, own_text=False, sizes=SIZES, seed=1)[1] == task
    assert first_task(docs, own_text=False, sizes=SIZES, seed=2)[1] != task


def test_held_out_documents_are_evaluated_first():
    docs = documents(sources=2, per_source=50, sentences=20)
    _, task = first_task(docs, own_text=False, sizes=Sizes(2, 10_000, 20), seed=0)
    split_of = {text: doc.split for doc in docs for text in doc.sentences}
    counts = [
        sum(doc.split == "heldout" for doc in docs if doc.source == label)
        for label in ("package0", "package1")
    ]
    assert min(counts) >= 2, "the test's documents have changed"
    assert {split_of[text] for _, text in task["dev"] + task["test"]} == {"heldout"}


@pytest.mark.parametrize(
    "text",
    ["A numpy array.", "It calls np.sort here.", "SKLEARN!", "Like scikit-learn.", "TFRecord"],
)
def test_names_of_packages_are_found(text):
    assert names_package(["numpy", "sklearn", "tensorflow"]).search(text)


@pytest.mark.parametrize("text", ["An input of the outputs.", "A half of it."])
def test_other_words_are_not(text):
    assert not names_package(["numpy", "sklearn", "tensorflow"]).search(text)


def test_sentences_that_name_any_of_the_packages_are_left_out():
    docs = [
        CorpusDocument("numpy", "numpy.a", ["Plain text.", "As in scipy.", "The numpy way."]),
        CorpusDocument("scipy", "scipy.a", ["Other text.", "It takes np.pi."]),
        CorpusDocument("small", "small.a", ["Few."]),
    ]
    groups = by_package(docs, classes=2)
    assert groups == {"numpy": [["Plain text."]], "scipy": [["Other text."]]}


def own(files: int, per_file: int, sentences: int) -> list[CorpusDocument]:
    made = [
        CorpusDocument(
            f"f{f}.txt",
            f"f{f}.txt:{f * per_file + d}",
            [f"Line {i}, {d}, {f}" for i in range(sentences)],
        )
        for f in range(files)
        for d in range(per_file)
    ]
    return corpus.hold_out(made, 0.05)


@pytest.mark.parametrize(
    "files, per_file, sentences, kind, labels",
    [
        (3, 40, 10, "file", {"f0.txt", "f1.txt", "f2.txt"}),
        (1, 3, 60, "document", {"f0.txt:0", "f0.txt:1", "f0.txt:2"}),
        (1, 200, 4, "part of the text", {f"part {i} of 4" for i in (1, 2, 3, 4)}),
        (1, 3, 11, "document", {"f0.txt:0", "f0.txt:1", "f0.txt:2"}),
    ],
)
def test_own_text_is_labeled_by_what_there_is(files, per_file, sentences, kind, labels):
    found, task = first_task(own(files, per_file, sentences), True, Sizes(8, 100, 20), seed=0)
    assert found == kind
    for rows in task.values():
        assert {label for label, _ in rows} == labels
    texts = [text for rows in task.values() for _, text in rows]
    assert len(set(texts)) == len(texts)


def test_parts_have_about_the_same_length():
    docs = own(files=1, per_file=100, sentences=5)
    sizes = [sum(map(len, units)) for units in by_part(docs).values()]
    assert len(sizes) == 4 and max(sizes) - min(sizes) <= 10


def test_own_text_that_repeats_itself_counts_once():
    docs = [
        CorpusDocument("f", "f:0", ["Yes.", "yes!", "No."]),
        CorpusDocument("f", "f:1", ["YES", "***"]),
        CorpusDocument("f", "f:2", ["Perhaps."]),
    ]
    assert [doc.sentences for doc in without_repetitions(docs)] == [["Yes.", "No."], ["Perhaps."]]


def test_too_little_text_is_said_in_a_sentence():
    with pytest.raises(UserError, match="too small for a labeled task"):
        first_task(own(1, 3, 4), True, SIZES, seed=0)


def test_order_of_the_rows_is_mixed():
    _, task = first_task(documents(3, 30, 20), False, SIZES, seed=0)
    labels = [label for label, _ in task["train"]]
    assert labels != sorted(labels)
