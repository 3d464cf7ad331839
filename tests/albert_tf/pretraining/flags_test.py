"""The flags of pre-training's data and recipe."""

import pytest
from absl.flags import FLAGS

from albert_tf.errors import UserError
from albert_tf.optimization import Recipe
from albert_tf.pretraining import flags as pretraining_flags
from albert_tf.training import InitialModel, starts
from albert_tf.training import flags as shared_flags
from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define


@pytest.fixture
def parse_data(new_flags):
    """(*argv) -> sets the flags of pre-training's data."""
    with new_flags():
        shared_flags.define_run_flags(("train_and_eval",))
        define(InitialModel, "Model")
        pretraining_flags.define_recipe_flags()
        shared_flags.define_training_flags(
            32, optimizer="lamb", learning_rate=0.001, num_train_steps=100
        )
        pretraining_flags.define_data_flags()
        flags.DEFINE_string("batch_size_schedule", None, "Batch sizes by their steps.")
        yield lambda *argv: FLAGS(["program", "--output_dir=run", *argv])


def test_a_recipe_for_another_batch(parse_data, capsys):
    parse_data("--num_warmup_steps=10")
    for made_for in (0, 32):
        parse_data(f"--recipe_batch_size={made_for}")
        assert pretraining_flags.recipe() == Recipe(0.001, 100, 10)
    assert not capsys.readouterr().out
    parse_data("--recipe_batch_size=128")
    assert pretraining_flags.recipe() == Recipe(0.0005, 400, 40)
    assert "recipe for batches of 128, scaled to 32: Recipe(" in capsys.readouterr().out


def test_the_warmup_is_a_share_unless_the_run_has_begun_with_another(parse_data, tmp_path):
    for steps, expected in ((100, 2), (20, 0), (125000, 3125)):
        FLAGS["num_warmup_steps"].unparse()
        parse_data(f"--output_dir={tmp_path}", f"--num_train_steps={steps}")
        assert pretraining_flags.recipe().num_warmup_steps == expected
        assert flags.resolved()["num_warmup_steps"] == expected
    starts.record(str(tmp_path), {"num_warmup_steps": 7}, {}, 0)
    for argv, expected in (([], 7), (["--overwrite"], 3125), (["--num_warmup_steps=9"], 9)):
        FLAGS["num_warmup_steps"].unparse()
        parse_data(f"--output_dir={tmp_path}", *argv)
        assert pretraining_flags.recipe().num_warmup_steps == expected


def test_records_or_text(parse_data, monkeypatch):
    monkeypatch.setattr(pretraining_flags, "open_records", lambda *given: given)
    parse_data("--train_data=records", "--train_batch_size=8", "--seed=3")
    assert pretraining_flags.data() == ("records", 8, 3, None, None)
    parse_data("--recurring_mask_share=0.5")
    assert pretraining_flags.data() == ("records", 8, 3, 0.5, None)
    for argv, message in (
        ([], "--train_data is missing: a folder of records .* by --train_text"),
        (["--train_data=a", "--train_text=b"], "--train_data and --train_text are both given"),
        (["--train_data=a", "--language=en"], "--language applies to --train_text only, but a"),
    ):
        for name in ("train_data", "train_text", "language"):
            FLAGS[name].unparse()
        parse_data(*argv)
        with pytest.raises(UserError, match=message):
            pretraining_flags.data()


def test_a_schedule_of_batch_sizes_is_in_place_of_others(parse_data, monkeypatch):
    monkeypatch.setattr(pretraining_flags, "open_records", lambda *given: given)
    monkeypatch.setattr("sys.argv", ["program", "--batch_size_schedule=8@0,16@5"])
    parse_data("--train_data=records", "--batch_size_schedule=8@0,16@5")
    assert pretraining_flags.data()[1] == "8@0,16@5"
    parse_data("--train_batch_size=4")  # As of a flag file.
    pretraining_flags.choose_sizes()
    assert pretraining_flags.recipe() == Recipe(0.001, 100, 2)
    parse_data("--recipe_batch_size=128")
    with pytest.raises(UserError, match="_batch_size=128 scales .* one batch size, and --b"):
        pretraining_flags.choose_sizes()
    both = ["--batch_size_schedule=8@0", "--train_batch_size=64"]
    monkeypatch.setattr("sys.argv", ["program", *both])
    parse_data("--train_batch_size=64")
    with pytest.raises(UserError, match="^--train_batch_size=64 and --batch_size_sch.* both set"):
        pretraining_flags.choose_sizes()


def test_a_schedule_of_masks_replaces_the_share_of_a_flag_file(parse_data, monkeypatch):
    monkeypatch.setattr(pretraining_flags, "open_text", lambda corpus, tokenizer, made, *_: made)
    monkeypatch.setattr(pretraining_flags, "load_tokenizer", lambda *_, **__: None)
    monkeypatch.setattr(pretraining_flags, "chosen_vocabulary", lambda: "")
    schedule = "--mask_schedule=0.3@0,0.15@5"
    for argv in (["program", schedule], ["program", schedule, "--masked_lm_prob=0.2"]):
        monkeypatch.setattr("sys.argv", argv)
        parse_data("--train_text=a", schedule, "--masked_lm_prob=0.2")
        if len(argv) == 2:
            assert pretraining_flags.data().mask_schedule == "0.3@0,0.15@5"
        else:
            with pytest.raises(UserError, match="--masked_lm_prob=0.2 and .* both set the share"):
                pretraining_flags.data()


def test_held_out_records(parse_data, monkeypatch):
    monkeypatch.setattr(pretraining_flags, "HeldOut", lambda *given: given)
    parse_data("--eval_data=a,b", "--eval_batch_size=5")
    assert pretraining_flags.held_out() == (["a", "b"], 5)
