"""The flag files of distillation: their programs take them, with the terms of their papers."""

import json
from pathlib import Path

import pytest

from albert_tf.distillation.objective import DEFAULT
from albert_tf.distillation.teacher import Distillation

CONFIGS = Path(__file__).parents[3] / "configs"
PRETRAINING = ("run_pretraining", "--train_data=records")
FINETUNING = ("run_finetuning", "--task=mrpc")
LAYERS = {"attention": 1, "hidden": 1}
# File -> its program, terms with their weights, temperature.
RECIPES = {
    "distill": (FINETUNING, DEFAULT, 2),
    "distill_distilbert": (PRETRAINING, {"logits": 5, "masked_words": 2, "cosine": 1}, 2),
    "distill_tinybert_general": (PRETRAINING, LAYERS, 2),
    "distill_tinybert_layers": (FINETUNING, LAYERS, 2),
    "distill_tinybert_answers": (FINETUNING, {"logits": 1}, 1),
}


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("distill*.flags")))
def test_terms_are_those_of_the_recipe(name, result_of):
    (program, *needed), terms, temperature = RECIPES[name]
    flags = (f"--flagfile={CONFIGS / name}.flags", "--teacher=teacher", "--output_dir=run")
    result = result_of(f"albert_tf.{program}", *flags, *needed, "--print_flags")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    settings = Distillation("teacher", tuple(found["distillation"]), found["temperature"])
    assert (settings.terms(), settings.temperature) == (terms, temperature)
