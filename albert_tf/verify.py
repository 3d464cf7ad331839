"""Compares weights with published numbers, or tests them on a page of English text.

    albert-tf verify albert-base-v2
    python -m albert_tf.verify --model=work/pretraining/model

Prints one line per check, beginning with "ok" or "off". The exit code is 1 if any check is off.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.pretrained.loading import preset_vocabulary
from albert_tf.text.models import MaskFiller
from data_pipeline.command_line import flags, run_binary
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_FOLDER = Path(__file__).parent / "verification"
PUBLISHED = _FOLDER / "published.json"  # Name of the weights -> numbers, each with its source.
PAGE = _FOLDER / "page.txt"  # One sentence per line; ten have a word in brackets: the blanks.
_BLANK = re.compile(r"\[(\w+)\]")
_MASKED_EVERY = 7  # About 15 % of the pieces, as in pre-training.
_NATS = 3.0  # The loss must be lower than that of a uniform guess by at least this much.
_FILLED = 0.8  # Share of the blanks that must be filled correctly.
_LINES = 50  # Lines in a batch.

Check = tuple[bool, str]  # Whether the check passed, and the finding.


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Weights")
    flags.DEFINE_string(
        "model",
        None,
        "Preset, model folder, Hugging Face folder or org/name; its name selects what to expect.",
        required=True,
    )


def main() -> None:
    path = re.sub(r"^([\w.-]+/[\w.-]+)@.*", r"\1", FLAGS.model)  # org/name@revision
    name = path.rstrip("/").rpartition("/")[2]
    published = json.loads(PUBLISHED.read_text(encoding="utf-8")).get(name)
    fill, tokenizer = MaskFiller(FLAGS.model), load_tokenizer(preset_vocabulary(FLAGS.model))
    checks = compare(published, fill, tokenizer) if published else try_page(fill, tokenizer)
    holds = True
    for is_right, finding in checks:
        print(f"{'ok ' if is_right else 'off'}  {finding}", flush=True)
        holds &= is_right
    if not holds:
        sys.exit(1)


def compare(
    published: list[dict[str, Any]], fill: MaskFiller, tokenizer: Tokenizer
) -> Iterator[Check]:
    """Compares with each entry of published.json: token ids, words for a mask, or outputs."""
    for entry in published:
        source = f"({entry['source']})"
        if "ids" in entry:
            cls, sep, count = tokenizer.cls_id, tokenizer.sep_id, len(entry["ids"])
            rows = [[cls, *ids, sep] for ids in tokenizer.encode_batch(entry["texts"])]
            right = sum(one == other for one, other in zip(rows, entry["ids"]))
            yield right == count, f"ids: equal for {right} of {count} texts {source}"
        elif "words" in entry:
            words = [word for word, _ in fill(entry["text"], top_k=len(entry["words"]))[0]]
            yield words == entry["words"], f"{entry['text']}: {', '.join(words)} {source}"
        else:
            found, most = difference(entry, fill.model), entry["tolerance"]
            finding = f"{entry['output']}: differs by {found:.0e}, at most {most} {source}"
            yield found <= most, finding


def difference(entry: dict[str, Any], model: AlbertPretrainer) -> float:
    """The largest difference of an output from the published values; infinite if the model is too
    small for them.
    """
    ids, values = entry["input_word_ids"], np.array(entry["values"])
    if max(ids) >= model.config.vocab_size:
        return math.inf
    inputs = {
        "input_word_ids": tf.constant([ids]),
        "input_mask": tf.constant([entry["input_mask"]]),
        "input_type_ids": tf.zeros([1, len(ids)], tf.int32),
    }
    places = tf.range(len(ids))[None]
    outputs = {**model.encoder(inputs), **model({**inputs, "masked_lm_positions": places})}
    window = tuple(slice(a, a + size) for a, size in zip(entry["first"], values.shape))
    found = outputs[entry["output"]][0].numpy()[window]
    return float(np.abs(found - values).max()) if found.shape == values.shape else math.inf


def try_page(fill: MaskFiller, tokenizer: Tokenizer) -> Iterator[Check]:
    """Checks that the model predicts the page's masked pieces and blanks better than a guess."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    loss = masked_loss(fill.model, tokenizer, [_BLANK.sub(r"\1", line) for line in lines if line])
    most = math.log(tokenizer.vocab_size) - _NATS
    yield loss <= most, f"{PAGE.name}: loss of masked pieces {loss:.2f}, at most {most:.2f}"
    blanks = [(line, match[1]) for line in lines if (match := _BLANK.search(line))]
    filled = [fill(_BLANK.sub("[MASK]", line), top_k=1)[0][0][0] for line, _ in blanks]
    right = sum(word.lower() == found.lower() for (_, word), found in zip(blanks, filled))
    least = math.ceil(_FILLED * len(blanks))
    yield right >= least, f"{PAGE.name}: {right} of {len(blanks)} blanks filled, at least {least}"


def masked_loss(model: AlbertPretrainer, tokenizer: Tokenizer, lines: list[str]) -> float:
    """The mean loss, in nats, of every seventh piece of the lines; each line is a sequence."""
    rows = [
        [tokenizer.cls_id, *ids[: model.config.max_position_embeddings - 2], tokenizer.sep_id]
        for ids in tokenizer.encode_batch(lines)
    ]
    losses: list[float] = []
    for start in range(0, len(rows), _LINES):
        batch = tf.ragged.constant(rows[start : start + _LINES], dtype=tf.int32)
        ids = batch.to_tensor(tokenizer.pad_id).numpy()  # [B, S]
        mask = tf.sequence_mask(batch.row_lengths(), ids.shape[1], tf.int32)
        column, row = np.arange(ids.shape[1]), np.arange(len(ids))[:, None]
        inside = (column > 0) & (column < batch.row_lengths().numpy()[:, None] - 1)
        is_masked = inside & ((column + row) % _MASKED_EVERY == 0)
        inputs = {
            "input_word_ids": tf.constant(np.where(is_masked, tokenizer.mask_id, ids)),
            "input_mask": mask,
            "input_type_ids": tf.zeros_like(mask),
            "masked_lm_positions": tf.repeat(tf.constant(column[None], tf.int32), len(ids), 0),
        }
        logits = tf.boolean_mask(model(inputs)["masked_lm_logits"], is_masked)  # [P, V]
        losses += list(tf.nn.sparse_softmax_cross_entropy_with_logits(ids[is_masked], logits))
    return float(np.mean(losses))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        sys.argv[1] = f"--model={sys.argv[1]}"
    define_flags()
    run_binary(main)
