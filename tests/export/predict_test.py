"""The client's formats; its three kinds of model are compared in server/main_test.py."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from absl.flags import FLAGS

from data_pipeline.errors import UserError
from export import predict
from export.client import predict_rows, predict_saved_model
from export.encoding import encode_batch
from export.predict import answers, format_row, read_rows, write_answers
from export.server.models import ModelConfig, ModelStore


def test_binary_equals_keras_in_another_process_after_the_model_folder_is_gone(exports, run_module):
    texts = ["the cat", "Café in 2010, 3.0", "", "the dog " * 50]
    flags = [f"--text={text}" for text in texts]
    process = run_module(
        "export.predict", f"--model={exports.base('classifier')}", "--json", *flags
    )
    assert process.returncode == 0, process.stderr
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    logits = exports.models["classifier"](encode_batch(exports.vocabulary, texts, 48))
    np.testing.assert_allclose([row["logits"] for row in rows], logits, atol=1e-5)
    np.testing.assert_allclose(
        [row["probabilities"] for row in rows], tf.nn.softmax(logits), atol=1e-5
    )
    assert [row["text"] for row in rows] == texts


def test_binary_from_a_file_to_a_file_with_progress(exports, run_module, tmp_path):
    source, written = tmp_path / "asked.jsonl", tmp_path / "answers.jsonl"
    texts = [{"text": f"the cat {number}"} for number in range(5)]
    source.write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")
    flags = ["export.predict", f"--model={exports.base('regression')}", f"--input_file={source}"]
    process = run_module(*flags, f"--output_file={written}", "--batch_size=2")
    assert process.returncode == 0, process.stderr
    assert process.stdout == f"5 answers: {written}\n"
    assert "5/5" in process.stderr, "progress"
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == [row["text"] for row in texts]
    expected = predict_rows(exports.base("regression"), texts)
    for row, other in zip(rows, expected, strict=True):
        assert row["value"] == pytest.approx(other["value"], abs=1e-5)


X = {"text": "x"}


def test_rows_for_people():
    masked = {
        "top_pieces": [["▁a", "b"], ["", ""]],
        "top_probabilities": [[0.5, 0.25], [0, 0]],
        "num_masks": 1,
    }
    assert format_row({"text": "x [MASK]"}, masked) == "x [MASK]\n  mask 1: a 0.500  b 0.250"
    row = {"label": "red", "label_id": 1, "probabilities": [0.25, 0.75]}
    assert format_row(X, row).split() == ["0.7500", "red", "x"]
    assert format_row(X, {"value": 2.5}).split() == ["2.5000", "x"]
    for others in ({"input_mask": [1]}, {"value": [0.5, 0.25]}):  # By tokens, over HTTP.
        assert format_row(X, others) == f"x\n  {json.dumps(others)}"


def test_rows_of_the_other_tasks_for_people():
    row = {"value": 2.5}
    assert format_row({"text_a": "x", "text_b": "y"}, row).split() == ["2.5000", "x", "|", "y"]
    assert format_row(X, {"similarity": 0.5, "pooled_similarity": 1.0}).split()[0] == "0.5000"
    chosen = {"choice": 1, "option": "Ann", "probabilities": [0.25, 0.75]}
    assert format_row({"question": "who", "options": ["Bob", "Ann"]}, chosen).split() == [
        "0.7500", "Ann", "who",
    ]  # fmt: skip
    answered = {
        "answer": "Ann", "score": 0.9, "start": 0, "end": 3, "num_answers": 2,
        "answers": ["Ann", "Ann did", ""], "probabilities": [0.9, 0.1, 0.0],
    }  # fmt: skip
    lines = format_row({"question": "Who?", "context": "Ann did."}, answered).splitlines()
    assert lines == [" 0.9000  Ann  [0, 3)  Who? | Ann did.", "   0.1000  Ann did"]
    assert "(no answer)" in format_row(X, {**answered, "answer": ""})
    tagged = {"words": ["a", ""], "labels": ["O", ""], "probabilities": [0.5, 0.0], "num_words": 1}
    assert format_row({"text": "a"}, tagged).splitlines() == ["a", "  0.5000  O           a"]
    replaced = {"pieces": ["\u2581a"], "probabilities": [0.25], "num_pieces": 1}
    assert format_row({"text": "a"}, replaced).splitlines() == ["a", "  0.2500  \u2581a"]
    assert format_row(X, {"embedding": list(range(9))}).endswith('[0, 1, 2, 3, "... 9"]}')


def test_rows_of_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    assert read_rows(str(tmp_path / "a.txt")) == [{"text": "one"}, {"text": ""}, {"text": "two"}]
    (tmp_path / "a.txt").write_bytes("one\u2028two\x85\r\n\r\nthree".encode())
    texts = [row["text"] for row in read_rows(str(tmp_path / "a.txt"))]
    assert texts == ["one\u2028two\x85", "", "three"]
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "context": "c"}\n\n', encoding="utf-8")
    assert read_rows(str(path)) == [{"question": "q", "context": "c"}]
    for content, message in (
        ("", "holds no line"),
        ('{"a": "b"}\n{"a"\n', "a.jsonl:2: expected a JSON object"),
        ('["a"]\n', "a.jsonl:1: expected a JSON object as"),
        ('{"a": ' + "9" * 5000 + "}\n", "a.jsonl:1: expected a JSON object"),
        ("[" * 100_000 + "\n", "a.jsonl:1: expected a JSON object"),
        ("{}\n", "a.jsonl:1: expected a JSON object as"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=message):
            read_rows(str(path))
    path.write_text('{"text": "half \\ud800, whole \\ud83e\\udd16"}')
    assert read_rows(str(path)) == [{"text": "half \ufffd, whole 🤖"}]
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        read_rows(str(path))
    with pytest.raises(UserError, match="nowhere of --input_file does not exist"):
        read_rows("nowhere")


def test_refused_rows_are_named_and_those_before_are_kept(exports, tmp_path):
    base, path = exports.base("embedding"), tmp_path / "answers.jsonl"
    rows = [{"text": "the cat"}, {"text": "a dog"}, {"text": 3}]
    with pytest.raises(UserError, match=r"'text' should be string.* \(row 3 of 3\)\. .* rows"):
        write_answers(str(path), answers(base, rows, "serving_default", 2, False))
    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in written] == ["the cat", "a dog"] and written[0]["embedding"]
    path.unlink()
    with pytest.raises(UserError, match=r"'text' should be string.* \(rows 1 to 2 of 3\)\.$"):
        write_answers(str(path), answers(base, rows[::-1], "serving_default", 2, False))
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="^Input 'text'.*[^)]$"):
        list(answers(base, rows[2:], "serving_default", 2, False))
    with pytest.raises(UserError, match="no rows to answer"):
        write_answers(str(path), iter([]))


def test_an_encoder_says_what_it_takes_and_answers_ids(exports):
    message = "takes input_mask, input_type_ids, input_word_ids; received text. Give these"
    with pytest.raises(UserError, match=message):
        predict_rows(exports.base("encoder"), [{"text": "the cat"}])
    row = {"input_word_ids": [2, 9, 3], "input_mask": [1, 1, 1], "input_type_ids": [0, 0, 0]}
    short = {name: values[:2] for name, values in row.items()}
    [first, _] = predict_rows(exports.base("encoder"), [row, short])
    assert np.shape(first["sequence_output"]) == (3, 32)


def test_options_are_filled_up_to_the_longest(exports):
    rows = [
        {"context": "the cat", "question": "who", "options": options}
        for options in (["dog", "man", "river"], ["cat"])
    ]
    found = predict_rows(exports.base("multiple_choice"), rows)
    assert found[1]["option"] == "cat" and found[1]["probabilities"] == [1.0, 0.0, 0.0]
    with pytest.raises(UserError, match="Row 2 has text; the first has context, question, options"):
        predict_rows(exports.base("multiple_choice"), [rows[0], {"text": "a"}])


def test_inputs_of_another_kind_are_one_sentence(exports):
    """As they may stand in a file; the last two are refused by the graph."""
    ids = [2, 9, 3]
    tokens = {"input_word_ids": ids, "input_mask": [1, 1, 1], "input_type_ids": [0, 0, 0]}
    for task, row, message in (
        ("classifier", {"text": 3}, "Input 'text' should be string"),
        ("classifier", {"text": ["a", "b"]}, "Input 'text' should be string"),
        ("encoder", {**tokens, "input_word_ids": ["a", "b", "c"]}, "'input_word_ids' should be"),
        ("encoder", {**tokens, "input_mask": [[1], [1, 1]]}, "'input_mask' should be int32"),
        ("encoder", {**tokens, "input_word_ids": [2, 2**32 + 5, 3]}, "'input_word_ids' should be"),
        ("encoder", {**tokens, "input_word_ids": [2, 10**6, 3]}, "input_word_ids must be from 0"),
        ("encoder", {**tokens, "input_mask": [7, 7, 7]}, "input_mask must be 0 or 1"),
    ):
        with pytest.raises(UserError, match=message):
            predict_rows(exports.base(task), [row])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--text=a", "--input_file=b.txt"), "--text and --input_file are both given"),
        (("--text=a", "--question=b", "--context=c"), "--text and --question are both given"),
        (("--text=a", "--option=b"), "--option needs --question, which is missing"),
        (("--input_file=a", "--text_pair=b"), "--text_pair needs --text, which is missing"),
        (("--input_file=a", "--context=b"), "--context needs --question"),
        (("--question=a", "--context=b", "--text_pair=c"), "--text_pair needs --text"),
        (("--question=b",), "1 --question and 0 --context"),
        (("--text=a", "--text_pair=b", "--text_pair=c"), "2 --text_pair for 1 --text"),
    ],
)
def test_flags_that_do_not_go_together(new_flags, given, message):
    with new_flags():
        predict.define_flags()
        FLAGS(["program", *given])
        with pytest.raises(UserError, match=message):
            predict.rows_of_flags()


def changed(content: bytes) -> bytes:
    """With one other bit in the middle."""
    half = len(content) // 2
    return content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]


@pytest.mark.parametrize(
    "name, damage",
    [
        ("saved_model.pb", changed),
        ("variables/variables.index", changed),
        ("variables/variables.data-00000-of-00001", lambda content: content[:-1]),
        ("fingerprint.pb", lambda content: bytes(len(content))),
        ("assets.extra/export_manifest.json", changed),
    ],
)
def test_a_damaged_export_is_refused(exports, tmp_path, name, damage):
    """By the client, and by the server, which names the reason."""
    folder = shutil.copytree(exports.paths["classifier"], tmp_path / "topics" / "1")
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=f"{path.name} is damaged.*or export again"):
        predict_saved_model(str(folder), {"text": ["a"]})
    with pytest.raises(UserError, match=f"does not load: .*{path.name} is damaged"):
        ModelStore([ModelConfig("topics", str(folder.parent))]).load()


@pytest.mark.parametrize("name, length", [("saved_model.pb", 99), ("variables/variables.index", 0)])
def test_a_damaged_export_without_hashes(exports, tmp_path, name, length):
    folder = shutil.copytree(exports.paths["classifier"], tmp_path / "1")
    (folder / "assets.extra" / "export_manifest.json").unlink()
    os.truncate(folder / name, length)
    with pytest.raises(UserError, match=f"{folder} cannot be loaded: .*[^.]\\. Copy the folder"):
        predict_saved_model(str(folder), {"text": ["a"]})
