"""SQuAD from its files to official scores, through the program and in parts."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning import flags as finetuning_flags
from albert_tf.finetuning.tasks.base import Predictions, TaskData
from albert_tf.finetuning.tasks.squad import (
    SQUAD_TASKS,
    SquadAnswers,
    SquadSettings,
    window_settings,
)
from albert_tf.finetuning.tasks.squad_answers import ScoredAnswer
from albert_tf.finetuning.tasks.squad_scores import best_thresholds, scores_v1, scores_v2
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.finetuning.training import FineTuningSettings, finetune
from albert_tf.training import InitialModel
from albert_tf.training.devices import Devices
from data_pipeline.command_line.flags import FLAGS
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import read_squad, read_squad_file
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer
from tests.conformance_cases import SMALLEST

VOCABULARY = Path(__file__).parents[3] / "goldens" / "wordpiece" / "vocab.txt"
LENGTHS = LengthSettings(max_seq_length=32, doc_stride=12, max_query_length=8)
ENGLISH = "The north of china is old, and the east was the place of two rivers in the year of war."
CHINESE = "北京是中国的首都。"
# Context, question, answers; without one it is impossible.
QUESTIONS = [
    (ENGLISH, "what is old?", ("north of china", "The north")),
    (ENGLISH, "when was it?", ("the year of war",)),
    (ENGLISH, "who had two cats?", ()),
    (CHINESE, "中国的首都是?", ("北京",)),
    (CHINESE, "哈尔滨?", ()),
]
V1, V2 = (TASKS[name] for name in SQUAD_TASKS)
TASK_FLAGS = ("--max_seq_length=32", "--doc_stride=12", "--max_query_length=8")
# Version 2.0 does all that 1.1 does, and more.
both_versions = pytest.mark.parametrize(
    "task", [pytest.param("squad1.1", marks=pytest.mark.table), "squad2.0"]
)


def entry(number, context, question, answers, with_answers):
    found = {"id": f"q{number}", "question": question}
    if with_answers:
        found["answers"] = [{"text": a, "answer_start": context.index(a)} for a in answers]
        found["is_impossible"] = not answers
    return found


def write(path, version, with_answers=True, most_answers=2, others=()):
    """A file with the questions that the version has."""
    paragraphs = []
    for number, (context, question, answers) in enumerate([*QUESTIONS, *others]):
        if version == "1.1" and not answers:
            continue
        found = entry(number, context, question, answers[:most_answers], with_answers)
        paragraphs.append({"context": context, "qas": [found]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return str(path)


@pytest.fixture
def data_dir(tmp_path):
    """The official files of both versions, and a configuration."""
    for version in ("1.1", "2.0"):
        write(tmp_path / f"train-v{version}.json", version, most_answers=1)
        write(tmp_path / f"dev-v{version}.json", version)
    SMALLEST.replace(vocab_size=1099).to_json_file(str(tmp_path / "config.json"))
    return tmp_path


@pytest.fixture
def program(data_dir, result_of):
    """(task, *flags) -> the program's result, with its run in data_dir / "run"."""

    def run(task, *flags):
        return result_of(
            "albert_tf.run_finetuning",
            f"--task={task}",
            f"--output_dir={data_dir / 'run'}",
            *("--distribution=one_device", "--fast=off", "--packed=false"),
            *flags,
        )

    return run


def read(*parts):
    return json.loads(Path(*parts).read_text("utf-8"))


@both_versions
def test_from_files_to_scores_and_answers(task, data_dir, program):
    version, run = task[-3:], data_dir / "run"
    training = (f"--config_file={data_dir}/config.json", f"--vocab_file={VOCABULARY}")
    rates = ("--num_train_steps=2", "--train_batch_size=4", "--learning_rate=0.01")
    done = program(task, f"--data_dir={data_dir}", *training, *rates, *TASK_FLAGS)
    assert done.returncode == 0, done.stderr
    assert f"--mode=predict --task={task} --output_dir={run} --predict_file=..." in done.stdout
    (result,) = read(run, "results.json")["results"]
    scores = result["best"]["metrics"]
    assert tuple(scores) == TASKS[task].metrics and result["key"] == "f1"

    # What the official script says of the written files.
    examples = read_squad(str(data_dir / f"dev-v{version}.json"))
    assert result["num_examples"] == len(examples.questions)
    files = {path.name[len(task) + 1 :]: path for path in (run / "predictions").iterdir()}
    names = ["dev_nbest_predictions.json", "dev_predictions.json"]
    texts = read(files["dev_predictions.json"])
    if version == "1.1":
        assert sorted(files) == names
        official = scores_v1(examples, texts)
    else:
        assert sorted(files) == [*names[:1], "dev_null_odds.json", *names[1:]]
        best = {name: a[0]["text"] for name, a in read(files[names[0]]).items()}
        thresholds = best_thresholds(examples, best, read(files["dev_null_odds.json"]))
        assert scores["f1"] == pytest.approx(scores["best_f1"])
        assert scores["best_f1"] == thresholds.best_f1
        official = scores_v2(examples, texts)
        assert scores["NoAns_f1"] == official["NoAns_f1"]
    assert (scores["exact"], scores["f1"]) == (official["exact"], official["f1"])

    # The stored model, of which the threshold is a part.
    if version == "2.0":
        done = program(task, "--mode=eval", f"--data_dir={data_dir}", "--splits=dev,train")
        assert done.returncode == 0, done.stderr
        again = read(run, "scores.json")["scores"]
        assert again["dev"] == pytest.approx(scores, abs=1e-5)
        assert set(again["train"]) == set(scores)
    unknown = write(data_dir / "new.json", version, with_answers=False)
    done = program(task, "--mode=predict", f"--predict_file={unknown}")
    assert done.returncode == 0, done.stderr
    assert read(run, "predictions", f"{task}_predict_predictions.json") == texts


@pytest.mark.parametrize(
    ("task", "flags", "sentence"),
    [
        ("squad1.1", (), "--max_seq_length=128 has room for 61 pieces"),
        ("squad2.0", ("--only_windows_with_answer",), "is for --task=squad1.1"),
        ("squad1.1", ("--null_score_diff_threshold=0",), "is for --task=squad2.0"),
        ("mrpc", ("--n_best_size=5",), "--n_best_size does not apply to --task=mrpc"),
    ],
)
def test_flags_that_do_not_go_together(task, flags, sentence, data_dir, program):
    start = (f"--config_file={data_dir}/config.json", f"--vocab_file={VOCABULARY}")
    done = program(task, f"--data_dir={data_dir}", *start, *flags)
    assert done.returncode == 2 and sentence in done.stderr


def test_flags_become_settings(new_flags):
    with new_flags():
        finetuning_flags.define_task_flags()
        finetuning_flags.define_split_flags()
        finetuning_flags.define_answer_flags()
        given = ("--n_best_size=7", "--max_answer_length=5", "--null_score_diff_threshold=-2.5")
        FLAGS(["program", "--task=squad2.0", *given])
        task = finetuning_flags.task()
    expected = SquadSettings(7, 5, null_score_diff_threshold=-2.5)
    assert task.settings == expected
    with new_flags():
        finetuning_flags.define_data_flags()
        finetuning_flags.define_answer_flags(of_ensemble=True)
        FLAGS(["program", "--task=squad1.1", "--span_average=members"])
        assert finetuning_flags.task().settings == SquadSettings(span_average="members")


def test_where_the_data_are(data_dir):
    task = V1
    assert task.read(TaskData(str(data_dir)), "dev").source.endswith("dev-v1.1.json")
    files = {"dev": str(data_dir / "dev-v2.0.json")}
    assert task.read(TaskData(str(data_dir), files), "dev").source == files["dev"]
    with pytest.raises(UserError, match="--data_dir is missing: .* or --predict_file"):
        task.read(TaskData(), "predict")
    with pytest.raises(UserError, match="no public test set"):
        task.read(TaskData(str(data_dir)), "predict")


def features_of(path, task, split="dev", lengths=LENGTHS, has_targets=True):
    tokenizer = WordPieceTokenizer(str(VOCABULARY))
    examples = read_squad_file(path, split)
    return task.features(examples, tokenizer, lengths, (), has_targets)


def test_features(data_dir):
    task = V1
    path = str(data_dir / "train-v1.1.json")
    dev, train = features_of(path, task), features_of(path, task, "train")
    assert len(dev) == len(train) > 3 and dev.targets == {}
    assert dev.sequence_outputs == ("start_logits", "end_logits")
    assert features_of(path, V2).sequence_outputs == ()
    assert set(train.targets) == {"start_positions", "end_positions", "is_impossible"}
    assert {*dev.content, *train.targets} == set(train.content)
    batch = train.batch(np.array([1, -1]), 32)
    assert batch["input_word_ids"].shape == (2, 32) and batch["example_weights"].tolist() == [1, 0]
    assert batch["start_positions"][0] == train.targets["start_positions"][1]
    pieces = WordPieceTokenizer(str(VOCABULARY)).encode("北京")
    (row,) = np.flatnonzero(train.source.question_numbers == 2)
    start, end = (train.targets[f"{side}_positions"][row] for side in ("start", "end"))
    assert train.inputs(np.array([row]), 32)["input_word_ids"][0, start : end + 1].tolist() == (
        pieces
    )


def test_windows_without_the_whole_answer_can_be_left_out(data_dir):
    path = str(data_dir / "train-v1.1.json")
    task = SQUAD_TASKS["squad1.1"](settings=SquadSettings(only_windows_with_answer=True))
    whole, some = (features_of(path, found, "train") for found in (V1, task))
    kept = whole.targets["is_impossible"] == 0
    assert 0 < kept.sum() < len(whole) and len(some) == kept.sum()
    np.testing.assert_array_equal(some.lengths, whole.lengths[kept])
    for name, values in whole.batch(np.flatnonzero(kept), 32).items():
        if name != "row_numbers":
            np.testing.assert_array_equal(some.batch(np.arange(len(some)), 32)[name], values)
    assert len(features_of(path, task)) == len(whole)  # Those of other splits stay.
    short = LengthSettings(max_seq_length=8, doc_stride=1, max_query_length=3)
    long = write(data_dir / "long.json", "1.1", most_answers=1)
    content = read(long)["data"][0]["paragraphs"][:1]
    Path(long).write_text(json.dumps({"data": [{"paragraphs": content}]}), encoding="utf-8")
    with pytest.raises(UserError, match="no window holds a whole answer"):
        features_of(long, task, "train", short)


def test_windows_have_to_overlap():
    assert window_settings(LENGTHS).doc_stride == 12
    assert window_settings(LengthSettings(384)).max_seq_length == 384
    exact = dataclasses.replace(LENGTHS, doc_stride=32 - 8 - 3)
    assert window_settings(exact).doc_stride == 21
    with pytest.raises(UserError, match="every --doc_stride=22 would not overlap"):
        window_settings(dataclasses.replace(exact, doc_stride=22))


def test_questions_without_answers(data_dir):
    with pytest.raises(UserError, match="question q2 has no answer, and all .*squad1.1 need one"):
        features_of(str(data_dir / "dev-v2.0.json"), V1)
    unknown = write(data_dir / "new.json", "2.0", with_answers=False)
    with pytest.raises(UserError, match=r"new.json: no question has an answer or is marked"):
        features_of(unknown, V2)
    assert len(features_of(unknown, V2, has_targets=False)) > 4


def beams(features, seed):
    """Made-up outputs of version 2.0's model."""
    random, count = np.random.default_rng(seed), len(features)
    starts, ends = random.integers(3, 20, (count, 2)), random.integers(3, 25, (count, 4))
    log_probs = [-random.random((count, size)) for size in (2, 4)]
    return {
        "start_top_index": starts,
        "start_top_log_probs": log_probs[0],
        "end_top_index": ends,
        "end_top_log_probs": log_probs[1],
        "answer_logits": random.normal(size=count).astype(np.float32),
    }


def test_the_threshold(data_dir):
    """Found where answers are known, else the model's own or that of the settings."""
    task = V2
    path = str(data_dir / "dev-v2.0.json")
    dev, new = features_of(path, task), features_of(path, task, has_targets=False)
    members = [task.keep(dev, beams(dev, seed)) for seed in (1, 2)]
    assert {name: len(values) for name, values in members[0].items()}["answer_logits"] == len(dev)
    found = task.answer(dev, members)
    scores = task.score(dev, found)
    threshold = scores["null_score_diff_threshold"]
    assert scores["f1"] == pytest.approx(scores["best_f1"]) and found.details.odds
    assert threshold > scores["best_f1_thresh"] and threshold not in found.details.odds.values()
    assert len(found.values) == 5 and threshold == found.details.threshold

    alone = task.answer(new, members)
    assert alone.details.threshold is None
    assert alone.values == [best[0].text for best in alone.details.best.values()] != found.values
    assert not task.is_settled
    stored = task.settled({"null_score_diff_threshold": threshold})
    assert stored.answer(new, members).values == found.values
    assert stored.answer(dev, members).details.threshold == threshold
    assert task.settled({}) is task
    chosen = SQUAD_TASKS["squad2.0"](settings=SquadSettings(null_score_diff_threshold=-9.0))
    assert chosen.is_settled
    assert chosen.answer(new, members).values == [""] * 5
    blank = chosen.score(dev, chosen.answer(dev, members))
    assert (blank["exact"], blank["HasAns_f1"], blank["NoAns_f1"]) == (40.0, 0.0, 100.0)
    assert blank["best_f1"] == scores["best_f1"]
    assert task.remarks(dev, chosen.answer(dev, members))[0].startswith("Every prediction is ''")
    assert V1.is_settled


def test_files_of_answers(data_dir, tmp_path):
    """As the official scripts read them."""
    path, best = str(tmp_path / "dev"), [ScoredAnswer("北京", 0.75, 1.5, 2.5)] * 2
    features = features_of(str(data_dir / "dev-v2.0.json"), V2)
    texts = ["北京", *[""] * 4]
    found = Predictions(texts, details=SquadAnswers({"q0": best}, {"q0": 1.25}))
    paths = V2.write(path, features, (), found)
    endings = ("predictions", "nbest_predictions", "null_odds")
    assert paths == [f"{path}_{ending}.json" for ending in endings]
    written, nbest, odds = map(read, paths)
    assert written == {f"q{number}": text for number, text in enumerate(texts)}
    first = {"text": "北京", "probability": 0.75, "start_log_prob": 1.5, "end_log_prob": 2.5}
    assert nbest == {"q0": [first, first]} and odds == {"q0": 1.25}
    found = Predictions(texts, details=SquadAnswers({"q0": best}))
    assert V1.write(path, features, (), found) == paths[:2]


def test_scores_that_a_file_does_not_have(data_dir):
    task = V2
    dev = features_of(str(data_dir / "dev-v1.1.json"), task)
    scores = task.score(dev, task.answer(dev, [task.keep(dev, beams(dev, 3))]))
    assert scores["NoAns_f1"] is None and scores["HasAns_f1"] == scores["f1"]


def test_settings_reach_the_answers(data_dir):
    path = str(data_dir / "dev-v1.1.json")
    random = np.random.default_rng(4)
    brief = SQUAD_TASKS["squad1.1"](settings=SquadSettings(n_best_size=3, max_answer_length=1))
    dev = features_of(path, brief)
    outputs = {
        name: random.normal(size=(len(dev), 32)).astype(np.float32) for name in dev.sequence_outputs
    }
    kept = brief.keep(dev, outputs)
    np.testing.assert_array_equal(kept["starts"], kept["ends"])
    best = brief.answer(dev, [kept]).details.best
    assert max(map(len, best.values())) <= 3
    assert len(V1.keep(dev, outputs)["starts"]) > len(kept["starts"])
    members = SQUAD_TASKS["squad1.1"](settings=SquadSettings(span_average="members"))
    both = [
        V1.keep(dev, {**outputs, "end_logits": e})
        for e in (outputs["end_logits"], -outputs["end_logits"])
    ]
    assert members.answer(dev, both).details != V1.answer(dev, both).details


@pytest.mark.table
def test_two_devices_are_one(data_dir, two_devices, monkeypatch):
    """Losses and scores of version 2.0; the last batch of the evaluation is not full."""
    task = V2
    start = InitialModel(config_file=str(data_dir / "config.json"))
    settings = FineTuningSettings(
        learning_rate=0.01, train_batch_size=4, num_train_steps=3, lengths=LENGTHS,
        classifier_dropout=0.0, vocab_file=str(VOCABULARY),
    )  # fmt: skip
    found = {}
    for name, strategy in {
        "one": tf.distribute.OneDeviceStrategy("CPU:0"),
        "two": two_devices,
    }.items():
        devices = Devices(strategy, packed=False, is_fast=False)
        folder = str(data_dir / name)
        (result,) = finetune(start, task, TaskData(str(data_dir)), folder, settings, devices)
        kept = np.load(Path(folder, "outputs", "dev.best.npz"))
        found[name] = dict(result.best.metrics), {key: kept[key] for key in kept.files}
        names, values = Path(folder, "metrics.csv").read_text("utf-8").splitlines()[:2]
        losses = dict(zip(names.split(","), values.split(",")))
        assert losses["split"] == "train"
        found[name] += (float(losses["loss"]),)
    assert found["one"][0] == pytest.approx(found["two"][0], abs=1e-5)
    for key, values in found["one"][1].items():
        if values.dtype.kind in "if":  # Others say whose outputs they are.
            np.testing.assert_allclose(found["two"][1][key], values, atol=1e-5)
    assert found["one"][2] == pytest.approx(found["two"][2], abs=1e-5)
