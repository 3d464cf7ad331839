"""A whole journey in a folder whose name is a pattern: programs mean the folder of that name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conformance_cases import SMALLEST
from tests.run_results import check_tensors

NAME = "a[1]x*?"
FLAGS = ("--distribution=one_device", "--fast=off", "--checkpoint_steps=1", "--num_train_steps=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_corpus, few_words) -> Path:
    """The odd folder with a corpus, a configuration and labeled rows; beside it what the name also
    stands for as a pattern, with other content.
    """
    parent = tmp_path_factory.mktemp("odd")
    for name in (NAME, "a1xyz"):
        (parent / name).mkdir()
        (parent / name / "corpus.txt").write_text("Another text.\n\nAnd one more.\n")
    folder = parent / NAME
    (folder / "corpus[1].txt").write_text(small_corpus(60), encoding="utf-8")
    (folder / "corpus1.txt").write_text("Another text.\n\nAnd one more.\n")
    SMALLEST.to_json_file(str(folder / "config.json"))
    rows = [f"{' '.join(few_words[i:])}\t{'ab'[i % 2]}" for i in range(16)]
    (folder / "rows.tsv").write_text("\n".join(["text\tlabel", *rows, ""]))
    return folder


def plain(model: Path, copy: Path) -> Path:
    """The weights of a model folder, copied to a path that is no pattern."""
    return shutil.copytree(model, copy) / "model.ckpt"


def interrupt(run: Path) -> None:
    """Makes a finished run one that was interrupted after its last checkpoint but one."""
    shutil.rmtree(run / "model")
    steps = sorted(int(path.stem.split("-")[1]) for path in (run / "checkpoints").glob("*.index"))
    assert len(steps) > 1
    for path in (run / "checkpoints").glob(f"step-{steps[-1]}.*"):
        path.unlink()


def test_a_journey_in_a_folder_whose_name_is_a_pattern(result_of, folder, eagerly, tmp_path):
    def done(module: str, *arguments: str) -> str:
        with eagerly():
            result = result_of(module, *arguments)
        assert result.returncode == 0, result.stderr + result.stdout[-2000:]
        return result.stdout

    corpus, vocabulary = folder / "corpus[1].txt", folder / "vocabulary"
    made = (f"--input={corpus}", f"--output_dir={vocabulary}", "--vocab_size=48")
    done("data_pipeline.train_vocabulary", *made)
    done(
        "data_pipeline.create_pretraining_data",
        *(f"--input={folder}/corpus[[]1].tx?", f"--output_dir={folder}/records"),
        *(f"--vocab_file={vocabulary}/spiece.model", "--max_seq_length=32", "--num_processes=1"),
    )
    done("data_pipeline.inspect_records", f"--data={folder}/records")

    pretraining = (
        "albert_tf.run_pretraining",
        *(f"--train_data={folder}/records/*.tfrecord", f"--eval_data={folder}/records"),
        *(f"--config_file={folder}/config.json", f"--output_dir={folder}/run"),
        *(*FLAGS, "--train_batch_size=4", "--num_warmup_steps=1"),
    )
    done(*pretraining)
    whole = plain(folder / "run" / "model", tmp_path / "whole")
    interrupt(folder / "run")
    assert "step 1" in done(*pretraining)
    check_tensors(plain(folder / "run" / "model", tmp_path / "resumed"), whole)

    finetuning = (
        *("albert_tf.run_finetuning", "--task=tsv", "--max_seq_length=32"),
        *(*FLAGS, "--train_batch_size=4"),
        *(f"--train_file={folder}/rows.tsv", f"--dev_file={folder}/rows.tsv"),
        *(f"--init_checkpoint={folder}/run", f"--output_dir={folder}/tuned"),
    )
    done(*finetuning)
    interrupt(folder / "tuned")
    done(*finetuning)

    models = [folder / "tuned" / "model", *(folder / f"{kind}[2]" for kind in ("g", "h", "n"))]
    for before, after, kind in zip(models, models[1:], ("google", "huggingface", "native")):
        output = done(
            "albert_tf.convert", f"--input={before}", f"--output={after}", f"--format={kind}"
        )
        assert "outputs differ by 0.0e+00" in output
    tuned, native = plain(models[0], tmp_path / "tuned"), plain(models[-1], tmp_path / "native")
    check_tensors(native, tuned)
    assert not (folder.parent / "a1xyz" / "run").exists()

    export = (f"--model_dir={models[0]}", "--task=classifier")
    refused = result_of("export.run_export", *export, f"--output_dir={folder}/exports")
    assert refused.returncode == 2
    assert "treats [ ] * and ? in a path as a pattern" in refused.stderr
    assert not (folder / "exports").exists()
