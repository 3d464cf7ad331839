"""Answers that need no network: the most frequent class, and a linear model of the words."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold

from data_pipeline.finetuning.examples import Split
from experiments.weights.tasks import WeightsTask

# Strengths of the penalty among which five-fold cross-validation on the training set chooses.
_CLASS_GRID = {"C": [0.01, 0.1, 1.0, 10.0]}
# Files are sorted by their source, as CoLA's are: folds of neighbors would be of other sources.
_FOLDS = KFold(5, shuffle=True, random_state=0)
_NUMBER_GRID = {"alpha": [1.0, 10.0, 100.0, 1000.0]}


def majority(task: WeightsTask, train: Split, dev: Split) -> np.ndarray:
    """The most frequent class of the training set, or its mean number, for every dev example."""
    labels = task.numbers([example.label for example in train.examples])
    answer = labels.mean() if task.labels is None else np.bincount(labels).argmax()
    return np.full(len(dev), answer)


def bag_of_words(task: WeightsTask, train: Split, dev: Split) -> np.ndarray:
    """Answers of a logistic regression, or ridge regression, on which words a text has.

    Of a pair: the words of A, of B, of both, and of one only.
    """
    vectorizer = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w+\b|[^\w\s]", min_df=2)
    vectorizer.fit(_texts(train, "text_a") + _texts(train, "text_b"))
    labels = task.numbers([example.label for example in train.examples])
    if task.labels is None:
        model, grid = Ridge(solver="lsqr"), _NUMBER_GRID
    else:
        model, grid = LogisticRegression(solver="liblinear"), _CLASS_GRID
    search = GridSearchCV(model, grid, scoring=make_scorer(task.score), cv=_FOLDS)
    search.fit(_features(vectorizer, train), labels)
    return search.predict(_features(vectorizer, dev))


def _texts(split: Split, column: str) -> list[str]:
    return [getattr(example, column) or "" for example in split.examples]


def _features(vectorizer: CountVectorizer, split: Split) -> sparse.csr_matrix:
    """[N, words], or [N, 4 words] of pairs."""
    first = vectorizer.transform(_texts(split, "text_a"))
    if split.examples[0].text_b is None:
        return first
    second = vectorizer.transform(_texts(split, "text_b"))
    return sparse.hstack(
        [first, second, first.multiply(second), abs(first - second)], format="csr"
    ).astype(np.float64)


def word_overlap(dev: Split) -> np.ndarray:
    """[N], the cosine of both texts' counts of words."""
    vectorizer = CountVectorizer(token_pattern=r"(?u)\b\w+\b")
    vectorizer.fit(_texts(dev, "text_a") + _texts(dev, "text_b"))
    first = vectorizer.transform(_texts(dev, "text_a")).toarray().astype(np.float64)
    second = vectorizer.transform(_texts(dev, "text_b")).toarray().astype(np.float64)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(norms, 1e-12)
