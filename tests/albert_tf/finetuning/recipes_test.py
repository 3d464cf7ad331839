"""The flag files of fine-tuning: the paper's values, and all of them are taken."""

import json
from pathlib import Path

import pytest

CONFIGS = Path(__file__).parents[3] / "configs"

# Lan et al. (2020), Table 14: rate, batch, the encoder's dropout, updates, warm-up, length.
TABLE_14 = {
    "cola": (1e-5, 16, 0, 5336, 320, 512),
    "sts-b": (2e-5, 16, 0, 3598, 214, 512),
    "sst-2": (1e-5, 32, 0, 20935, 1256, 512),
    "mnli": (3e-5, 128, 0, 10000, 1000, 512),
    "qnli": (1e-5, 32, 0, 33112, 1986, 512),
    "qqp": (5e-5, 128, 0.1, 14000, 1000, 512),
    "rte": (3e-5, 32, 0.1, 800, 200, 512),
    "mrpc": (2e-5, 32, 0, 800, 200, 512),
    "wnli": (2e-5, 16, 0.1, 2000, 250, 512),
    "squad1.1": (5e-5, 48, 0, 3649, 365, 384),
    "squad2.0": (3e-5, 48, 0, 8144, 814, 512),
    "race": (2e-5, 32, 0.1, 12000, 1000, 512),
    "race_v2": (1e-5, 32, 0, 12000, 1000, 512),  # The reference's README.
}


@pytest.fixture
def flags_of(result_of):
    """Names of flag files -> the values that the program takes from them."""

    def read(*names: str) -> dict[str, object]:
        files = [f"--flagfile={CONFIGS / name}.flags" for name in names]
        flags = ("--output_dir=run", "--print_flags")
        result = result_of("albert_tf.run_finetuning", *files, *flags)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return read


@pytest.mark.parametrize("task", TABLE_14)
def test_values_of_the_paper(flags_of, task):
    found = flags_of(f"finetune_{task}")
    names = ("learning_rate", "train_batch_size", "hidden_dropout", "num_train_steps")
    names += ("num_warmup_steps", "max_seq_length")
    assert tuple(found[name] for name in names) == TABLE_14[task]
    assert found["attention_dropout"] == found["hidden_dropout"]
    assert found["task"] == task.partition("_")[0] and found["classifier_dropout"] == 0.1
    assert found["optimizer"] == "adamw" and not found["bias_correction"]


@pytest.mark.parametrize("size", ["large", "xlarge", "xxlarge_v2"])
def test_stability_follows_a_recipe(flags_of, size):
    found = flags_of("finetune_rte", f"stable_{size}")
    assert found["task"] == "rte" and found["num_train_steps"] == 800
    assert found["bias_correction"] and found["learning_rate"] <= 1e-5
    assert found["hidden_dropout"] == found["attention_dropout"] == 0


def test_every_recipe_is_tested():
    names = {path.stem.removeprefix("finetune_") for path in CONFIGS.glob("finetune_*.flags")}
    assert names == set(TABLE_14)
