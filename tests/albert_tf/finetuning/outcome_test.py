"""What a fine-tuning run says at its end."""

from __future__ import annotations

import types

from albert_tf.finetuning import outcome


def test_a_last_model_that_has_fallen_back():
    """Said where the best one tells examples apart, and only there."""
    task = types.SimpleNamespace(remarks=lambda features, predictions, labels: predictions)
    results = [
        types.SimpleNamespace(split=split, notes=notes)
        for split, notes in (("dev", ()), ("other", ("All are 1.",)), ("sound", ()))
    ]
    last = {"dev": ["All are 0."], "other": ["All are 1."], "sound": []}
    (sentence,) = outcome.fallen_back(task, dict.fromkeys(last), last, (), results)
    assert sentence.startswith("The last model has fallen back") and "dev: All are 0." in sentence
