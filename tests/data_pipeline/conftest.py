"""Text that every Python has (its own docstrings), a vocabulary and records made of it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records.record_folder import read_manifest, record_files
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

MODULES = """
argparse ast asyncio bisect calendar cmd codecs collections configparser contextlib csv ctypes
dataclasses datetime decimal difflib dis doctest email enum fractions ftplib functools gettext
glob heapq html http imaplib inspect io ipaddress itertools json locale logging mailbox
multiprocessing numbers operator optparse os pathlib pdb pickle pickletools platform plistlib
poplib pprint profile random re sched selectors shelve shlex shutil smtplib socket socketserver
sqlite3 ssl statistics string subprocess tarfile tempfile textwrap threading timeit tkinter.ttk
trace traceback turtle typing unittest urllib.request uuid warnings weakref xml.dom.minidom
zipfile
""".split()  # noqa: SIM905


def rows(table, *few) -> list:
    """All rows of a table as parameters, of which `make test` runs a few."""
    return [row if row in few else pytest.param(row, marks=pytest.mark.table) for row in table]


def records_of(folder) -> tf.data.TFRecordDataset:
    """The serialized records of a folder."""
    return tf.data.TFRecordDataset(record_files(read_manifest(str(folder))))


def _docstrings(name: str) -> list[str]:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    found = [inspect.getdoc(module)]
    for _, member in sorted(inspect.getmembers(module), key=lambda item: item[0]):
        if inspect.isclass(member) or inspect.isroutine(member):
            found.append(inspect.getdoc(member))
            if inspect.isclass(member):
                found += [
                    inspect.getdoc(value)
                    for _, value in inspect.getmembers(member, inspect.isroutine)
                ]
    return [text for text in dict.fromkeys(found) if text]


@pytest.fixture(scope="session")
def documents_text() -> list[str]:
    """Docstrings, one line per sentence, each a document."""
    texts = [text for name in MODULES for text in _docstrings(name)]
    texts = ["\n".join(line for line in text.splitlines() if line.strip()) for text in texts]
    return [text for text in dict.fromkeys(texts) if len(text) > 200]


@pytest.fixture(scope="session")
def lines(documents_text) -> list[str]:
    """Thousands of real lines."""
    found = [line for text in documents_text for line in text.splitlines()]
    assert len(found) > 3000
    return found


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory, documents_text) -> str:
    """The documents in the format of google-research/albert."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n\n".join(documents_text) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def small_file(tmp_path_factory, documents_text) -> str:
    """The first of the documents."""
    path = tmp_path_factory.mktemp("corpus") / "small.txt"
    path.write_text("\n\n".join(documents_text[:150]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory, corpus_file) -> str:
    """A vocabulary with pieces such as "0," in it."""
    folder = tmp_path_factory.mktemp("vocab")
    text = Path(corpus_file).read_text(encoding="utf-8")
    numbers = [
        f"in {year}, and {year % 100}, or {year % 10}, 1,{year}," for year in range(1900, 2100)
    ]
    source = folder / "text.txt"
    source.write_text(text + "\n\n" + "\n".join(numbers * 6), encoding="utf-8")
    return train_vocabulary(str(source), str(folder / "out"), 2500)


@pytest.fixture(scope="session")
def tokenizer(vocab_file) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(vocab_file)


@pytest.fixture(scope="session")
def wordpiece() -> WordPieceTokenizer:
    """A small vocabulary of English and Chinese."""
    folder = Path(__file__).parents[1] / "goldens" / "wordpiece"
    return WordPieceTokenizer(str(folder / "vocab.txt"))


@pytest.fixture(scope="session")
def records_dir(tmp_path_factory, corpus_file, tokenizer) -> str:
    """Records of 64 tokens in several files; read only."""
    folder = tmp_path_factory.mktemp("records") / "data"
    settings = PretrainingSettings(max_seq_length=64, dupe_factor=2, masking="static")
    create_pretraining_data(Corpus(corpus_file), str(folder), tokenizer, settings, shard_mb=0.25)
    return str(folder)
