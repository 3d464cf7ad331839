"""Labeled tasks from a corpus: where does this sentence come from?

Docstrings are labeled with their package, and sentences that name one of the packages are left
out. Your own text is labeled with its file; a single file with its documents, if they are long,
else with the part of the file. All labels have equally many rows. Training, development and test
rows come from different documents (unless a document is the label), held-out ones first.
"""

from __future__ import annotations

import collections
import dataclasses
import random
import re
from collections.abc import Callable, Iterable, Sequence

from data_pipeline.errors import UserError
from demo import corpus
from demo.corpus import CorpusDocument

TASK_SPLITS = ("train", "dev", "test")
EVALUATION_SHARE = 0.2  # Largest share of a label's sentences in dev and test.
PARTS = 4
# Abbreviations by which sentences name a package; its own name is always one.
ALIASES = {
    "matplotlib": ("mpl", "plt", "pyplot"),
    "numpy": ("np",),
    "PIL": ("pillow",),
    "sklearn": ("scikit",),
    "tensorflow": ("tf",),
    "tf_keras": ("keras",),
}

# Sentences that belong together (a document's, or a single one), by label.
Groups = dict[str, list[list[str]]]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Largest sizes of a task.

    Attributes:
      classes: number of labels.
      train: number of training rows of each label.
      evaluation: number of rows of each label in dev, and in test.
    """

    classes: int
    train: int
    evaluation: int


def names_package(packages: Iterable[str]) -> re.Pattern:
    """A pattern that finds the packages' names and abbreviations, also as part of a word."""
    names = [name for package in packages for name in (package, *ALIASES.get(package, ()))]
    long = [re.escape(name) for name in names if len(name) > 4]
    short = [rf"(?<![a-z]){re.escape(name)}" for name in names if len(name) <= 4]
    return re.compile("|".join(long + short), re.IGNORECASE)


def group(documents: Sequence[CorpusDocument], labels: Sequence[str]) -> Groups:
    """The sentences of documents by label: held-out documents first, otherwise shuffled."""
    order = sorted(
        zip(documents, labels),
        key=lambda pair: (pair[0].split != "heldout", corpus.rank(pair[0].name)),
    )
    groups: Groups = {}
    for document, label in order:
        groups.setdefault(label, []).append(document.sentences)
    return groups


def by_package(documents: Sequence[CorpusDocument], classes: int) -> Groups:
    """Documents of the packages with most sentences, without sentences that name one of them."""
    counts: collections.Counter = collections.Counter()
    for document in documents:
        counts[document.source] += len(document.sentences)
    largest = [source for source, _ in counts.most_common(classes)]
    named = names_package(largest)
    silent = [
        dataclasses.replace(
            document, sentences=[text for text in document.sentences if not named.search(text)]
        )
        for document in documents
        if document.source in largest
    ]
    return group(silent, [document.source for document in silent])


def by_file(documents: Sequence[CorpusDocument]) -> Groups:
    """Documents, labeled with their file."""
    return group(documents, [document.source for document in documents])


def by_document(documents: Sequence[CorpusDocument]) -> Groups:
    """Single sentences, labeled with their document."""
    return {
        document.name: [[text] for text in sorted(document.sentences, key=corpus.rank)]
        for document in documents
    }


def by_part(documents: Sequence[CorpusDocument]) -> Groups:
    """Documents, labeled with the part of the text that they begin in."""
    total = sum(len(document.sentences) for document in documents)
    labels, before = [], 0
    for document in documents:
        labels.append(f"part {1 + before * PARTS // total} of {PARTS}")
        before += len(document.sentences)
    return group(documents, labels)


def divide(units: Sequence[list[str]], rows: int) -> dict[str, list[str]]:
    """The sentences of a label by split; a unit stays whole, dev and test take the first units.

    Args:
      units: lists of sentences that belong together.
      rows: number of sentences at which dev and test are full; or EVALUATION_SHARE of all.
    """
    limit = EVALUATION_SHARE * sum(map(len, units))
    divided: dict[str, list[str]] = {name: [] for name in TASK_SPLITS}
    for unit in units:
        dev, test = len(divided["dev"]), len(divided["test"])
        fits = dev + test + len(unit) <= limit
        target = ("dev" if dev <= test else "test") if fits and min(dev, test) < rows else "train"
        divided[target] += unit
    return divided


def balanced_task(
    groups: Groups, sizes: Sizes, least_rows: int, rng: random.Random
) -> dict[str, list[tuple[str, str]]] | None:
    """A task with equally many rows of each label.

    Args:
      groups: units of sentences by label.
      sizes: largest sizes of the task.
      least_rows: labels with fewer training rows, or with fewer than an eighth of it in dev or
        test, are left out.
      rng: source of the choice and order of rows.

    Returns:
      Rows (label, text) by split; None: the text is too little for two labels.
    """
    divided = {label: divide(units, sizes.evaluation) for label, units in groups.items()}
    least = {"train": least_rows, "dev": least_rows // 8, "test": least_rows // 8}
    usable = [
        label
        for label, splits in divided.items()
        if all(len(splits[name]) >= least[name] for name in TASK_SPLITS)
    ]
    usable = sorted(usable, key=lambda label: -len(divided[label]["train"]))[: sizes.classes]
    if len(usable) < 2:
        return None
    task = {}
    for name in TASK_SPLITS:
        most = sizes.train if name == "train" else sizes.evaluation
        count = min(most, *(len(divided[label][name]) for label in usable))
        rows = [
            (label, text) for label in usable for text in rng.sample(divided[label][name], count)
        ]
        rng.shuffle(rows)
        task[name] = rows
    return task


def first_task(
    documents: Sequence[CorpusDocument], own_text: bool, sizes: Sizes, seed: int
) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """The first kind of task that there is enough text for.

    Args:
      documents: the corpus.
      own_text: whether it is the user's own text; otherwise docstrings of packages.
      sizes: largest sizes of the task.
      seed: seed of the choice and order of rows.

    Returns:
      The meaning of the label, as in "package"; rows (label, text) by split.

    Raises:
      UserError: there is too little text for any kind.
    """
    if own_text:
        documents = without_repetitions(documents)
        kinds: list[tuple[str, Callable[[], Groups], int]] = [
            ("file", lambda: by_file(documents), 96),
            ("document", lambda: by_document(documents), 32),
            ("part of the text", lambda: by_part(documents), 32),
            ("document", lambda: by_document(documents), 8),
        ]
    else:
        kinds = [("package", lambda: by_package(documents, sizes.classes), 96)]
    for kind, groups, least_rows in kinds:
        task = balanced_task(groups(), sizes, least_rows, random.Random(seed))
        if task is not None:
            return kind, task
    raise UserError(
        "The corpus is too small for a labeled task: two documents of at least ten different "
        "sentences are needed; give more text."
    )


def without_repetitions(documents: Sequence[CorpusDocument]) -> list[CorpusDocument]:
    """The documents without repeated sentences, of which the first in the corpus stays."""
    seen: set[str] = set()
    kept = []
    for document in documents:
        new = {}
        for sentence in document.sentences:
            new.setdefault(corpus.normalized(sentence), sentence)
        fresh = [sentence for key, sentence in new.items() if key and key not in seen]
        seen.update(new)
        if fresh:
            kept.append(dataclasses.replace(document, sentences=fresh))
    return kept
