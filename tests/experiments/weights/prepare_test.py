"""Preparation of text: what is left out, what is counted, what the files of tokens hold."""

import json

import numpy as np
import pytest

from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights import evaluation_sets, tokens

VOCABULARY = "albert_tf/weights/albert-small-en/spiece.model"
SECRET = "the quick brown fox jumps over the lazy dog today"
LIKE = "a quick brown fox jumps over the lazy dog today and then"  # Two known n-grams of five.


@pytest.fixture
def sets(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "dev.tsv").write_text(f"sentence\tlabel\n{SECRET}.\t1\nfox jumps over the dog.\t0\n")
    (folder / "dev.json").write_text(json.dumps({"data": [{"context": f"Yes. {SECRET}!"}]}))
    return evaluation_sets.EvaluationSets([str(folder / "*.tsv"), str(folder / "*.json")])


@pytest.mark.parametrize(
    ("paragraph", "number"),
    [
        (f"He said: “{SECRET.upper()}”, and slept.", 3),  # In both sets, and the paragraph itself.
        (LIKE, 1),
        (f"{LIKE} {'and nothing else happened in that long night' * 9}", 0),
        ("fox jumps over the dog", 0),
        ("", 0),
    ],
)
def test_sentences_of_eight_words_and_paragraphs_like_them_are_found(sets, paragraph, number):
    assert len(sets.problems(paragraph)) == number


def test_lines_of_json(tmp_path):
    """Also with a byte order mark, blank lines, and a line separator inside a text."""
    path = tmp_path / "dev.jsonl"
    lines = [json.dumps({"text": f"{SECRET}\u2028 yes"}, ensure_ascii=False), "", '["b"]', ""]
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert evaluation_sets.strings(str(path)) == [f"{SECRET}\u2028 yes", "b"]
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match="dev.jsonl is not UTF-8"):
        evaluation_sets.strings(str(path))


@pytest.fixture(name="corpus")
def fixture_corpus(tmp_path):
    pages = [f"The cat number {i} sat on a mat.\nNobody knew why." for i in range(40)]
    pages[7] += f"\nHe said: {SECRET}. Then he left."
    lines = [json.dumps({"text": text}) for text in pages]
    (tmp_path / "wiki.train.jsonl").write_text("\n".join(lines[:30]))
    (tmp_path / "books.train.jsonl").write_text("\n".join(lines[30:]))
    (tmp_path / "wiki.heldout.jsonl").write_text(json.dumps({"text": f"A page.\n{LIKE}."}))
    return tmp_path


def test_what_is_prepared_holds_no_evaluation_set(corpus, sets, result_of):
    work = corpus / "work"
    arguments = [f"--evaluation_sets={','.join(sets.patterns)}", f"--vocab_file={VOCABULARY}"]
    result = result_of(
        "experiments.weights.prepare",
        *(f"--corpus={corpus}/*.train.jsonl", f"--heldout={corpus}/*.heldout.jsonl", *arguments),
        *(f"--output_dir={work}", "--max_part_mb=0.0005"),
    )
    assert result.returncode == 0, result.stderr
    manifest = json.loads((work / "manifest.json").read_text())
    kept = {"documents": 30, "paragraphs": 60, "left_out": 1}
    assert manifest["domains"]["wiki, train"] == kept
    assert manifest["domains"]["wiki, heldout"] == {"documents": 1, "paragraphs": 1, "left_out": 1}
    assert (work / "heldout" / "wiki.jsonl").read_text() == '{"text": "A page."}\n'

    # The files of tokens hold the documents of the text files, domains mixed.
    tokenizer = load_tokenizer(VOCABULARY)
    files = [work / "tokens" / file["name"] for file in manifest["files"]]
    parts = [tokens.unpacked(path.read_bytes(), tokenizer) for path in files]
    assert len(parts) > 1 and sum(map(len, (part.ids for part in parts))) == manifest["tokens"]
    read = list(read_documents(Corpus(f"{work}/train/*.jsonl")))
    assert len(read) == 40 == sum(part.num_documents for part in parts)
    assert sorted(map(tuple, read)) != list(map(tuple, read))
    expected = np.concatenate([tokenizer.encode_flat(document).ids for document in read])
    assert np.array_equal(np.concatenate([part.ids for part in parts]), expected)

    # A sentence of a set, and where it stands; nothing of it is left.
    for text, found in ((f"{corpus}/*.train.jsonl", ["1", "1"]), (f"{work}/train/*", ["0", "0"])):
        result = result_of("experiments.weights.overlap", f"--input={text}", arguments[0])
        rows = [line for line in result.stdout.splitlines() if "dev.tsv" in line or "*.tsv" in line]
        assert [line.split()[-2:] for line in rows] == [found]


def test_tokens_are_limited_and_earlier_files_are_not_mixed_with_them(corpus, result_of):
    command = [
        "experiments.weights.prepare",
        *(f"--corpus={corpus}/*.train.jsonl", f"--heldout={corpus}/*.heldout.jsonl"),
        *(f"--output_dir={corpus}/work", f"--vocab_file={VOCABULARY}", "--tokens=200"),
    ]
    result = result_of(*command)
    manifest = json.loads((corpus / "work" / "manifest.json").read_text())
    assert result.returncode == 0 and 200 <= manifest["tokens"] < 300
    again = result_of(*command)
    assert again.returncode == 2 and "has files of an earlier call" in again.stderr
