"""Tasks of sentences whose words have tags: named entities, parts of speech."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.finetuning.tasks.answer_tables import one_cell
from albert_tf.finetuning.tasks.averaging import AVERAGES, average_classes
from albert_tf.finetuning.tasks.base import Predictions, ScoredTask, StoredOutputs
from albert_tf.metrics import Scores
from albert_tf.metrics.tagging import conlleval_tags
from albert_tf.models import AlbertTokenClassifier, objectives
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.tagging import OUTSIDE, TaggedExample, tag_names
from data_pipeline.finetuning.tagging_features import TaggedPieces, encode_tagged
from data_pipeline.tokenizers.base import Tokenizer

Tags = tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class TaggingTask(ScoredTask[TaggedPieces]):
    """A task in which each word of a sentence has one of C tags."""

    model_class = AlbertTokenClassifier
    example_type = TaggedExample
    objective = objectives.TokenClassificationObjective
    averages = AVERAGES
    rows_are_examples = False  # The number of words that fit into a row depends on its length.

    def find_labels(self, examples: Split) -> Sequence[str]:
        return tag_names(examples)

    def features(
        self,
        split: Split,
        tokenizer: Tokenizer,
        lengths: LengthSettings,
        labels: Sequence[str],
        with_targets: bool = True,
    ) -> Features[TaggedPieces]:
        """A row is a sentence, and each of its words has a target."""
        length = lengths.max_seq_length
        encoded = encode_tagged(split.examples, tokenizer, length, labels, with_targets)
        if encoded.note:
            print(encoded.note)
        pieces = encoded.pieces
        content = {
            "ids": pieces.ids,
            "lengths": pieces.lengths,
            "rows": encoded.rows,
            "places": encoded.places,
        }
        if encoded.tag_ids is not None:
            content["tag_ids"] = encoded.tag_ids
        return Features(encoded, encoded.inputs, pieces.lengths, length, {}, content, ("logits",))

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {"num_classes": len(labels), "dropout_rate": dropout_rate}

    def keep(
        self, features: Features[TaggedPieces], outputs: Mapping[str, np.ndarray]
    ) -> StoredOutputs:
        """The logits at the first piece of each word that was not cut off, float32 [W, C]."""
        # A word is predicted at its first piece, the only one with a target in training.
        sentences = features.source
        return {"logits": outputs["logits"][sentences.rows, sentences.places]}

    def answer(
        self, features: Features[TaggedPieces], stored: Sequence[StoredOutputs]
    ) -> Predictions:
        """The likeliest tag of each word, by an average over the members.

        `values` are the tags of each sentence, `details` the probabilities of these tags. Words
        that were cut off are predicted to be O, with the probability 0.
        """
        sentences = features.source
        of_words = average_classes(stored, self.average)
        names = iter([sentences.labels[place] for place in of_words.values])
        highest = iter(np.max(of_words.probabilities, axis=1).tolist())
        values: list[Tags] = []
        details: list[tuple[float, ...]] = []
        for example, num_kept in zip(sentences.examples, sentences.num_kept.tolist()):
            num_cut = len(example.words) - num_kept
            # Scores compare all words of the file, so words that were cut off need a tag, too.
            values.append((*itertools.islice(names, num_kept), *[OUTSIDE] * num_cut))
            details.append((*itertools.islice(highest, num_kept), *[0.0] * num_cut))
        return Predictions(values, of_words.probabilities, details)

    def gold(self, features: Features[TaggedPieces]) -> Sequence[Any]:
        return [example.tags for example in features.source.examples]

    def score(self, features: Features[TaggedPieces], predictions: Predictions) -> Scores:
        """The scores of whole spans; of single words where the tags describe no spans."""
        labels = features.source.labels
        right, predicted = (
            [conlleval_tags(tags, labels) for tags in sentences]
            for sentences in (self.gold(features), predictions.values)
        )
        return self.scorer(right, predicted)

    def write(
        self,
        path: str,
        features: Features[TaggedPieces],
        labels: Sequence[str],
        predictions: Predictions,
    ) -> list[str]:
        """Writes a line for each word and an empty one after each sentence.

        Columns, separated by tabs: the word, the last column of the file if it has more than one
        (the right tag, where it is known), the predicted tag, its probability.
        """
        lines = []
        answers = zip(features.source.examples, predictions.values, predictions.details)
        for example, predicted, highest in answers:
            columns: list[Sequence[str]] = [[one_cell(word) for word in example.words]]
            if example.tags is not None:
                columns.append([one_cell(tag) for tag in example.tags])
            columns += [predicted, [f"{value:.6f}" for value in highest]]
            lines += ["\t".join(row) for row in zip(*columns)]
            lines.append("")
        written = f"{path}.conll"
        atomic_files.write_text(written, "\n".join(lines) + "\n")
        return [written]
