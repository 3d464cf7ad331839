"""The reference of the language becomes plain sentences; one's own text stays as it is."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from data_pipeline.errors import UserError
from demo.make_corpus import hold_out, own_documents, prose, reference_documents

ROOT = Path(__file__).parents[2]

PAGE = """The "if" statement
******************

The "if" statement is used for *conditional*
execution [1]:

   if_stmt ::= "if" assignment_expression ":" suite
               ["else" ":" suite]. It goes on here now.

It selects **exactly** one of the suites. Then that suite is
executed, e.g. by "f()", and no other.

   >>> if True: print("This is not at all prose.")

* One of the items goes on
  in the next line.

Note:

  A remark is indented in the page.

|  "x"    |  A cell of the table here.  |

See also: the reference
"""


def test_a_page_becomes_sentences():
    assert prose(PAGE) == [
        "It selects exactly one of the suites.",
        "Then that suite is executed, e.g. by f(), and no other.",
        "One of the items goes on in the next line.",
        "A remark is indented in the page.",
    ]


def test_the_reference_is_text_enough_for_the_demonstration():
    documents = reference_documents(topics)
    text = " ".join(sentence for sentences in documents.values() for sentence in sentences)
    assert len(documents) > 50 and len(text) > 200_000
    for markup in ("::=", ">>>", "+---", "****", "===="):
        assert markup not in text
    train, heldout = hold_out(documents)
    sizes = [sum(map(len, part)) for part in (train, heldout)]
    assert 0.08 < sizes[1] / sum(sizes) <= 0.1 and len(heldout) > 5


def invented(count: int, sentences: int = 4) -> dict[str, list[str]]:
    return {f"d{i}": [f"Sentence {j} of {i}." for j in range(sentences)] for i in range(count)}


def test_held_out_documents_do_not_depend_on_the_order():
    documents = invented(100)
    train, heldout = hold_out(documents)
    assert len(heldout) == 10 and sorted(train + heldout) == sorted(documents.values())
    names = list(documents)
    random.Random(0).shuffle(names)
    again = hold_out({name: documents[name] for name in names})
    assert sorted(again[1]) == sorted(heldout)


def test_too_little_text_is_said(tmp_path):
    with pytest.raises(UserError, match="Two documents of at least 3 sentences.* has 1 "):
        hold_out({**invented(1), **invented(5, 2), "d0": ["a", "b", "c"]})
    with pytest.raises(UserError, match=r"No file matches .*nowhere.txt"):
        own_documents(str(tmp_path / "nowhere.txt"))
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(UserError, match=r"no text in .*empty.txt"):
        own_documents(str(tmp_path / "empty.txt"))


@pytest.fixture
def run(quick_python, tmp_path):
    """Runs the program with a text of one's own; gives the finished process."""

    def run(corpus: str) -> subprocess.CompletedProcess:
        flags = [f"--corpus={corpus}", f"--output_dir={tmp_path}/out"]
        command = [quick_python, "-m", "demo.make_corpus", *flags]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)

    return run


def test_own_text_is_split_and_nothing_is_lost(tmp_path, run):
    records = [{"text": f"First of {i}, as one\tsees. Second of {i}! third"} for i in range(9)]
    with gzip.open(tmp_path / "own.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, records)))
    result = run(f"{tmp_path}/own.jsonl.gz")
    assert result.returncode == 0, result.stderr
    assert "train.txt: 24 sentences in 8 documents, 0.00 MB" in result.stdout
    train, heldout = (
        [text.split("\n") for text in (tmp_path / "out" / name).read_text()[:-1].split("\n\n")]
        for name in ("train.txt", "heldout.txt")
    )
    expected = [[f"First of {i}, as one sees.", f"Second of {i}!", "third"] for i in range(9)]
    assert len(heldout) == 1 and sorted(train + heldout) == expected


def test_a_mistake_is_one_line(tmp_path, run):
    (tmp_path / "own.txt").write_text("One sentence.\nTwo.\nThree.\nFour.\n")
    result = run(f"{tmp_path}/own.txt")
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("make_corpus.py: error: Two documents of at least 3 sentences")
    assert "Traceback" not in result.stderr and not (tmp_path / "out").exists()
