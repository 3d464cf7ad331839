"""Baselines without a network: the most frequent class, and linear models on bags of words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import normalize

from data_pipeline.finetuning.examples import Split
from experiments.weights.tasks import WeightsTask

_WORD = r"(?u)\b\w+\b"
# The features of a bag: which words occur, or weighted counts of character n-grams.
BAGS: dict[str, Callable[[], CountVectorizer]] = {
    "bag of words": lambda: CountVectorizer(
        binary=True, token_pattern=r"(?u)\b\w+\b|[^\w\s]", min_df=2
    ),
    "bag of characters": lambda: TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2),
}
# Regularization strengths; five-fold cross-validation on the training set chooses one.
_CLASS_GRID = {"C": [0.01, 0.1, 1.0, 10.0]}
# Shuffled, because files such as CoLA's are sorted by source: otherwise folds would differ in it.
_FOLDS = KFold(5, shuffle=True, random_state=0)
_NUMBER_GRID = {"alpha": [1.0, 10.0, 100.0, 1000.0]}


def majority(task: WeightsTask, train: Split, dev: Split) -> np.ndarray:
    """For every dev example, the training set's most frequent class, or its mean number."""
    labels = task.gold(train)
    answer = np.bincount(labels).argmax() if task.labels else labels.mean()
    return np.full(len(dev), answer)


def bag(task: WeightsTask, train: Split, dev: Split, parts: str) -> np.ndarray:
    """Predictions of a logistic regression, or ridge regression, on one of BAGS.

    Features of a pair: the words of A, of B, of both, and of only one of them.
    """
    vectorizer = BAGS[parts]()
    vectorizer.fit(_texts(train, "text_a") + _texts(train, "text_b"))
    labels = task.gold(train)
    if not task.labels:
        model, grid = Ridge(solver="lsqr"), _NUMBER_GRID
    else:
        model, grid = LogisticRegression(solver="liblinear"), _CLASS_GRID
    search = GridSearchCV(model, grid, scoring=make_scorer(task.score), cv=_FOLDS)
    search.fit(_features(vectorizer, train), labels)
    return search.predict(_features(vectorizer, dev))


def _texts(split: Split, column: str) -> list[str]:
    return [getattr(example, column) or "" for example in split.examples]


def _features(vectorizer: CountVectorizer, split: Split) -> sparse.csr_matrix:
    """Features [N, parts], or [N, 4 parts] for pairs."""
    first = vectorizer.transform(_texts(split, "text_a"))
    if split.examples[0].text_b is None:
        return first
    second = vectorizer.transform(_texts(split, "text_b"))
    return sparse.hstack(
        [first, second, first.multiply(second), abs(first - second)], format="csr"
    ).astype(np.float64)


# Features for the cosine of two texts; only the rarity of features is learned.
OVERLAPS: dict[str, Callable[[], CountVectorizer]] = {
    "counts of words": lambda: CountVectorizer(token_pattern=_WORD),
    "TF-IDF of words": lambda: TfidfVectorizer(token_pattern=_WORD),
    "TF-IDF of character 2-5-grams": lambda: TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5)
    ),
}


def overlap(dev: Split, parts: str) -> np.ndarray:
    """[N], the cosine of both texts with the features of one of OVERLAPS."""
    vectorizer = OVERLAPS[parts]()
    vectorizer.fit(_texts(dev, "text_a") + _texts(dev, "text_b"))
    first = normalize(vectorizer.transform(_texts(dev, "text_a")).astype(np.float64))
    second = normalize(vectorizer.transform(_texts(dev, "text_b")).astype(np.float64))
    return np.asarray(first.multiply(second).sum(axis=1)).ravel()
