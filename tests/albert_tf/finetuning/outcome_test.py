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


def test_a_last_model_that_is_better_when_scored_again():
    """On the split that chose the best one, and where both have a score."""

    def said(split: str, best: float | None, last: float | None) -> list[str]:
        scored = (types.SimpleNamespace(metrics={"f1": score}) for score in (best, last))
        names = {"split": split, "best_on": "dev", "key": "f1"}
        found = types.SimpleNamespace(**names, **dict(zip(("best", "last"), scored)))
        return outcome.overtaken([found])

    (sentence,) = said("dev", 0.5, 0.75)
    assert "last model's f1 is 0.7500 and that of the best one 0.5000" in sentence
    assert not said("dev", 0.5, 0.5) and not said("other", 0.5, 0.75)
    assert not said("dev", None, 0.75) and not said("dev", 0.5, None)
