"""The protocol of all workers: they build a case on request and run it on request.

Runs in the environments of other libraries, so it needs only NumPy. Requests and answers are JSON,
one per line, on standard input and output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# ALBERT base, version 2 (no dropout).
VOCAB_SIZE, EMBEDDING_SIZE, HIDDEN_SIZE = 30_000, 128, 768
NUM_LAYERS, NUM_HEADS, INTERMEDIATE_SIZE, MAX_POSITIONS = 12, 12, 3072, 512
NUM_CLASSES = 2
_FIRST_WORD = 5  # Smaller ids are special tokens.
# Prefix of model classes in transformers -> their argument for the sentence-order labels.
ORDER_LABELS = {"Albert": "sentence_order_label", "Bert": "next_sentence_label"}


def huggingface_kind(case: dict[str, Any]) -> str:
    """The prefix of transformers' class names for the case's model."""
    return "Bert" if case["model"] == "bert-base" else "Albert"


def huggingface_settings(kind: str) -> dict[str, Any]:
    """The arguments for a transformers configuration: base size, tanh GELU, no dropout."""
    of_kind = {
        "Albert": {"embedding_size": EMBEDDING_SIZE, "classifier_dropout_prob": 0.0},
        "Bert": {"classifier_dropout": 0.0},
    }
    return {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN_SIZE,
        "num_hidden_layers": NUM_LAYERS,
        "num_attention_heads": NUM_HEADS,
        "intermediate_size": INTERMEDIATE_SIZE,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_labels": NUM_CLASSES,
        **of_kind[kind],
    }


def make_batch(case: dict[str, Any]) -> dict[str, np.ndarray]:
    """Random tokens of the case's lengths: word_ids, mask, type_ids int32 [B, S]; masked positions,
    their ids int32 [B, P]; sentence order and class int32 [B].
    """
    random = np.random.default_rng(0)
    lengths = np.array(case["lengths"])
    batch, sequence = len(lengths), case["padded_to"]
    mask = (np.arange(sequence) < lengths[:, None]).astype(np.int32)
    masks = max(1, round(0.15 * min(lengths)))
    positions = [np.sort(random.permutation(length)[:masks]) for length in lengths]
    return {
        "word_ids": (random.integers(_FIRST_WORD, VOCAB_SIZE, mask.shape) * mask).astype(np.int32),
        "mask": mask,
        "type_ids": np.zeros_like(mask),
        "positions": np.array(positions, np.int32),
        "masked_ids": random.integers(_FIRST_WORD, VOCAB_SIZE, [batch, masks]).astype(np.int32),
        "order": random.integers(0, 2, [batch]).astype(np.int32),
        "label": random.integers(0, NUM_CLASSES, [batch]).astype(np.int32),
    }


def resident_bytes(field: str) -> int:
    """A field of /proc/self/status, such as VmRSS or VmHWM (the peak)."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def serve(build: Callable[[dict[str, Any]], Callable[[], Any]]) -> None:
    """Answers requests until standard input ends.

    Args:
      build: a case (pass, model, task, precision, lengths, padded_to) -> a function that runs it
        once and returns when the result is available. The function may have the attributes `steps`,
        the number of steps in a run, and `found`, additional entries of the answer. Raises
        NotImplementedError for cases that the library lacks.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Redirects the output of libraries to standard error.
    at_start, run = resident_bytes("VmRSS"), None
    for line in sys.stdin:
        request = json.loads(line)
        if "case" in request:
            run = None
            try:
                run = build(request["case"])
                run()
                answer = {"ready": True}
            except NotImplementedError as error:
                answer = {"ready": False, "reason": str(error)}
        else:
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start
            answer = {"seconds": seconds / getattr(run, "steps", 1), **getattr(run, "found", {})}
        answer["peak_bytes"] = resident_bytes("VmHWM") - at_start
        print(json.dumps(answer), file=answers, flush=True)
