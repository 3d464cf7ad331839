"""Finds sentences of evaluation sets in training text, and paragraphs that resemble them."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data_pipeline.command_line import flags
from data_pipeline.corpus.blocks import match_files
from data_pipeline.corpus.documents import Corpus, raw_documents, read_corpus
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.sentences import split_sentences
from data_pipeline.errors import UserError

_WORDS = 8  # Minimum words in a sentence to count, and the length of n-grams.
_SHARE, _NGRAMS = 0.3, 15  # A paragraph with this many known n-grams resembles a set.
_FACTORS = np.random.default_rng(0).integers(1 << 63, size=_WORDS, dtype=np.uint64) | np.uint64(1)
_GREATEST = np.array([np.iinfo(np.uint64).max])


def define_set_flag(required: bool = False) -> None:
    """The flag of the evaluation sets."""
    flags.DEFINE_list(
        "evaluation_sets",
        None if required else [],
        "Globs of files (TSV, JSON, JSON by lines, text), each of which is a set whose sentences "
        "are looked for.",
        required=required,
    )


class EvaluationSets:
    """The sentences and n-grams of evaluation sets, which training text must not contain."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = list(patterns)
        self._numbers: dict[str, int] = {}  # Ids of known words; 0 is any other word.
        # Sentences by the hash of their first n-gram.
        self._sentences: dict[int, list[tuple[str, str]]] = collections.defaultdict(list)
        self._count: collections.Counter = collections.Counter()
        ngrams = [np.zeros(0, np.uint64)]
        for pattern in patterns:
            # A text may occur several times in a set, such as the context of many questions.
            texts = {text for path in match_files([pattern]) for text in strings(path)}
            for sentence in {tuple(words(s)) for t in texts for s in split_sentences(t)}:
                if len(sentence) >= _WORDS:
                    for word in sentence:
                        self._numbers.setdefault(word, len(self._numbers) + 1)
                    found = self._ngrams(sentence)
                    ngrams.append(found)
                    self._sentences[int(found[0])].append((pattern, f" {' '.join(sentence)} "))
                    self._count[pattern] += 1
        ngrams.append(_GREATEST)  # So that every result of searchsorted is a valid index.
        self._known = np.unique(np.concatenate(ngrams))

    def _ngrams(self, text: Sequence[str]) -> np.ndarray:
        """Hashes, uint64, of all n-grams of words; 0 for n-grams with an unknown word."""
        ids = np.array([self._numbers.get(word, 0) for word in text], np.uint64)
        if len(ids) < _WORDS:
            return np.zeros(0, np.uint64)
        windows = np.lib.stride_tricks.sliding_window_view(ids, _WORDS)
        return np.where((windows > 0).all(axis=1), (windows * _FACTORS).sum(axis=1), np.uint64(0))

    def problems(self, paragraph: str) -> set[tuple[str, str]]:
        """(set, sentence) for each sentence of a set in the paragraph; also ("", "") if there are
        any, or if it has many of the n-grams of all sets. Empty for nearly all paragraphs.
        """
        text = words(paragraph)
        ngrams = self._ngrams(text)
        places = np.searchsorted(self._known, ngrams)
        known = (self._known[places] == ngrams) & (ngrams > 0)
        number = int(np.count_nonzero(known))
        if not number:
            return set()
        whole = f" {' '.join(text)} "
        found = {
            one
            for ngram in ngrams[known].tolist()
            for one in self._sentences.get(ngram, ())
            if one[1] in whole
        }
        if found or number >= min(_NGRAMS, _SHARE * len(ngrams)):
            found.add(("", ""))
        return found

    def rows(self, counts: collections.Counter) -> list[dict[str, object]]:
        """A row for each set, and one for paragraphs, from counts of `problems`."""
        by_set = collections.Counter(name for name, _ in counts)
        paragraphs: collections.Counter = collections.Counter()
        for (name, _), count in counts.items():
            paragraphs[name] += count
        found = [
            {"set": name, "sentences": self._count[name], "found": by_set[name]}
            | {"times": paragraphs[name]}
            for name in self.patterns
        ]
        every = {"set": "paragraphs with any, or like one", "sentences": "", "found": ""}
        return [*found, {**every, "times": paragraphs[""]}]


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation: "It's 5." -> it, s, 5."""
    return re.findall(r"[^\W_]+", text.lower())


def strings(path: str) -> list[str]:
    """All strings in a file of JSON or JSON lines; in other files, the fields of all lines."""
    try:
        content = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error}.") from None
    try:
        return list(_leaves(json.loads(content)))
    except ValueError:
        pass
    lines = [line for line in content.split("\n") if line.strip()]
    try:
        return [text for line in lines for text in _leaves(json.loads(line))]
    except ValueError:
        return [field for line in lines for field in line.split("\t")]


def _leaves(value: Any) -> Iterator[str]:
    """The strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)


def documents(patterns: str) -> Iterator[tuple[str, list[str]]]:
    """The file name and the paragraphs of each document."""
    for path in match_files(patterns):
        corpus = Corpus(path)
        for block in read_corpus([path], corpus):
            for document in raw_documents(block, corpus, ReadReport()):
                yield Path(path).name, document.texts
