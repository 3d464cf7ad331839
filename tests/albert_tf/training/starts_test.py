"""What may change from one start of a run to the next, and what is kept of each."""

import json

import pytest

from albert_tf.checkpoints.native import METADATA_FILE
from albert_tf.errors import UserError
from albert_tf.training import run_folder
from albert_tf.training.starts import CHANGES
from data_pipeline.files import lock

FLAGS = {
    "optimizer": "lamb", "bias_correction": False, "ema_decay": 0.0, "precision": "float32",
    "init_checkpoint": None, "learning_rate": 0.1, "num_train_steps": 10, "overwrite": False,
    "max_failures": 0, "eval_data": ["a"],
}  # fmt: skip


@pytest.fixture
def start(tiny_config, tmp_path):
    """(allowed, **flags) -> starts the run in tmp_path / "run", and ends at once."""

    def run(allowed=(), **changes):
        flags = {**FLAGS, **changes}
        folder = str(tmp_path / "run")
        with run_folder.claim(folder, tiny_config, flags, {"seed": 1}, False, allowed):
            pass

    return run


@pytest.fixture
def save(tmp_path):
    """(step) -> what `start` takes for a checkpoint."""

    def write(step):
        (tmp_path / "run" / "checkpoints").mkdir(exist_ok=True)
        (tmp_path / "run" / "checkpoints" / f"step-{step}.index").touch()

    return write


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("optimizer", {"optimizer": "adamw"}, "--optimizer=lamb, and the moments"),
        ("optimizer", {"bias_correction": True}, "moments"),
        ("optimizer", {"ema_decay": 0.9}, "averages of the weights"),
        ("precision", {"precision": "mixed_float16"}, "loss scale"),
        ("init_checkpoint", {"init_checkpoint": "other"}, "would not be read"),
    ],
)
def test_what_a_run_cannot_go_on_with(start, save, capsys, kind, changes, reason):
    start()
    save(4)
    name, value = next(iter(changes.items()))
    with pytest.raises(UserError, match=f"--{name}={value}: .*{reason}.*--allow_changes={kind} "):
        start(**changes)
    with pytest.raises(UserError, match="--allow_changes"):
        start([other for other in CHANGES if other != kind], **changes)
    start([kind], **changes)
    assert f"  --{name}: {FLAGS[name]} -> {value}\n" in capsys.readouterr().out
    save(8)
    start([], **changes)  # As it was started last.
    assert not capsys.readouterr().out


def test_a_run_of_which_nothing_is_kept_begins_with_any_flags(start, tmp_path, capsys):
    start()
    start(optimizer="adamw", precision="mixed_float16", init_checkpoint="other")
    assert "  --optimizer: lamb -> adamw\n" in capsys.readouterr().out
    (tmp_path / "run" / "model").mkdir()
    (tmp_path / "run" / "model" / METADATA_FILE).touch()
    with pytest.raises(UserError, match="--optimizer=lamb: .* was started with --optimizer=adamw"):
        start()


def test_other_changes_are_said(start, capsys):
    start(overwrite=True)
    start(overwrite=False, max_failures=3, eval_data=["a"])
    assert not capsys.readouterr().out
    start(learning_rate=0.2, num_train_steps=20, precision="mixed_bfloat16")
    assert capsys.readouterr().out.splitlines() == [
        "Changed since the last start of this run:",
        "  --learning_rate: 0.1 -> 0.2",
        "  --num_train_steps: 10 -> 20",
        "  --precision: float32 -> mixed_bfloat16",
    ]


def test_a_start_that_made_no_checkpoint_does_not_count(start, save, tmp_path):
    """What the checkpoints were made with decides, not what was tried last."""
    start()
    save(4)
    start(["optimizer"], optimizer="adamw")  # Ends before it saves anything.
    start()
    (tmp_path / "run" / "flags.json").unlink()
    with pytest.raises(UserError, match="--optimizer=adamw: .* was started with --optimizer=lamb"):
        start(optimizer="adamw")
    start(["optimizer"], optimizer="adamw")
    save(8)
    with pytest.raises(UserError, match="--optimizer=lamb: .* was started with --optimizer=adamw"):
        start()


def test_flags_that_nobody_knows(start, tmp_path, capsys):
    start()
    (tmp_path / "run" / "flags.json").unlink()
    start(optimizer="adamw")
    assert "flags.json is missing: changes of flags are not detected" in capsys.readouterr().out


def test_each_start_is_kept(start, save, tmp_path):
    start()
    start(learning_rate=0.2)
    save(4)
    with pytest.raises(UserError):
        start(optimizer="adamw")
    start(learning_rate=0.3)
    folder = tmp_path / "run"
    starts = [json.loads(path.read_text()) for path in sorted((folder / "starts").iterdir())]
    assert [each["flags"]["learning_rate"] for each in starts] == [0.1, 0.2, 0.3]
    assert [each["newest_checkpoint"] for each in starts] == [0, 0, 4]
    last = json.loads((folder / "flags.json").read_text())
    del last["sha256"]
    assert last == starts[2]["flags"]
    assert json.loads((folder / "environment.json").read_text())["python"]


@pytest.mark.parametrize("name", ["flags.json", "run.json", "albert_config.json"])
def test_a_file_that_a_power_cut_emptied(start, tmp_path, name):
    start()
    (tmp_path / "run" / name).write_bytes(b"")
    with pytest.raises(UserError, match=name):
        start()


def test_a_start_that_was_killed_at_once(start, tmp_path, tiny_config):
    start()
    (tmp_path / "run" / run_folder.RUN_FILE).unlink()  # It is written last.
    (tmp_path / "run" / "run.json.partial").write_text("half")
    start(optimizer="adamw")
    assert run_folder.read(str(tmp_path / "run"))[1] == {"seed": 1}


def test_files_of_a_run_without_its_description(start, tmp_path):
    start()
    (tmp_path / "run" / run_folder.RUN_FILE).unlink()
    (tmp_path / "run" / "checkpoints").mkdir()
    with pytest.raises(UserError, match="is not empty and holds no run"):
        start()


def test_one_process_at_a_time(start, tmp_path):
    start()
    with (
        lock.locked(str(tmp_path / "run"), run_folder.LOCK_FILE),
        pytest.raises(UserError, match="is in use by process .*Wait for it"),
    ):
        start(learning_rate=0.3)
    assert len(list((tmp_path / "run" / "starts").iterdir())) == 1
