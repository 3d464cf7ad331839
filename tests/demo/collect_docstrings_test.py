"""Packages become documents without being imported; one's own text stays as it is."""

import gzip
import json

import pytest

from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.errors import UserError
from demo import corpus
from demo.collect_docstrings import (
    STANDARD_LIBRARY,
    default_roots,
    docstring_documents,
    own_documents,
    source_files,
)


def test_modules_become_documents(site_packages):
    documents = docstring_documents([("", site_packages)])
    names = [document.name for document in documents]
    assert names == sorted(names) and len(names) == 41
    assert {document.source for document in documents} == {"alpha", "beta", "single"}
    assert "alpha" not in names  # One sentence is too little.
    assert documents[-1].sentences == [
        "The first sentence of three.",
        "The second one of three!",
        "Is this third one a question?",
    ]


def test_a_sentence_is_kept_once_where_it_comes_first(site_packages):
    documents = docstring_documents([("", site_packages)])
    assert sum("See AlphaReader for it." in doc.sentences for doc in documents) == 1
    first, second, third = "A sentence of its own.", "Another one of them.", "A third one of them."
    text = f'"""{first} {second} {third} {first.upper()}"""'
    (site_packages / "alpha" / "m0.py").write_text(text)
    (site_packages / "alpha" / "m1.py").write_text(text)
    (site_packages / "beta" / "m0.py").write_text(text[:-3] + ' New one in here."""')
    documents = {doc.name: doc for doc in docstring_documents([("", site_packages)])}
    assert documents["alpha.m0"].sentences == [
        first,
        second,
        third,
    ]
    assert not {"alpha.m1", "beta.m0"} & set(documents)


def test_processes_do_not_change_the_result(site_packages):
    roots = [("", site_packages)]
    assert docstring_documents(roots, processes=1) == docstring_documents(roots, processes=3)


def test_this_interpreter_has_packages_and_a_standard_library():
    files = source_files(default_roots())
    modules = {module: package for package, module, _ in files}
    assert modules["argparse"] == modules["email.message"] == STANDARD_LIBRARY
    assert modules["numpy"] == "numpy" and modules["_pytest.fixtures"] == "pytest"
    assert not [module for module in modules if ".tests." in module or "site-packages" in module]


def test_own_text_is_split_and_nothing_is_lost(tmp_path, run):
    records = [{"text": f"First of {i}, as one\tsees. Second of {i}! third"} for i in range(9)]
    with gzip.open(tmp_path / "own.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, records)))
    out = tmp_path / "out"
    result = run("collect_docstrings", f"--corpus={tmp_path}/own.jsonl.gz", f"--output_dir={out}")
    assert result.returncode == 0, result.stderr
    assert "train.txt: 0.0 MB, 24 sentences in 8 documents" in result.stdout
    documents = corpus.read(str(out))
    assert [document.name for document in documents] == [f"own.jsonl.gz:{i}" for i in range(9)]
    assert documents[4].sentences == ["First of 4, as one sees.", "Second of 4!", "third"]
    (held_out,) = read_documents(Corpus(str(out / "heldout.txt")))
    assert held_out == next(doc.sentences for doc in documents if doc.split == "heldout")


def test_a_mistake_is_one_line(tmp_path, run):
    (tmp_path / "own.txt").write_text("One sentence.\nTwo.\nThree.\nFour.\n")
    result = run(
        "collect_docstrings", f"--corpus={tmp_path}/own.txt", f"--output_dir={tmp_path}/out"
    )
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("collect_docstrings.py: error: Two documents of at least 3 sentences")
    assert "Traceback" not in result.stderr and not (tmp_path / "out").exists()


def test_files_without_text_are_named(tmp_path):
    with pytest.raises(UserError, match=r"No file matches .*nowhere.txt"):
        own_documents(str(tmp_path / "nowhere.txt"))
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(UserError, match=r"no text in .*empty.txt"):
        own_documents(str(tmp_path / "empty.txt"))
