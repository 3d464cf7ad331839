"""The table of vectors: what is trained on what, and scored on what."""

import shutil
from pathlib import Path

import pytest

from albert_tf import AlbertPretrainer
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from experiments.weights import vectors

VOCABULARY = "albert_tf/weights/albert-small-en/spiece.model"


@pytest.fixture(name="work")
def fixture_work(tiny_config, tmp_path, monkeypatch):
    config = tiny_config.replace(vocab_size=12000, max_position_embeddings=64)
    model, rules, metadata = AlbertPretrainer(config), {"lower": True}, {"max_seq_length": 16}
    native.save(model, str(tmp_path / "start"), metadata, VOCABULARY, {**rules, "rules": "google"})
    words = ["red car", "blue boat", "old house", "cold river", "tall tree", "small dog"]
    stsb = [["g", "f", "y", "0", "2.5", words[i], words[i - 1]] for i in range(4)]
    (tmp_path / "glue" / "STS-B").mkdir(parents=True)
    for split in ("train", "dev"):
        header = ["genre", "filename", "year", "old_index", "score", "sentence1", "sentence2"]
        write(tmp_path / "glue" / "STS-B" / f"{split}.tsv", header, *stsb)
    write(
        tmp_path / "sick.txt",
        ["sentence_A", "sentence_B", "relatedness_score"],
        *([words[i], words[i + 1], str(i + 1)] for i in range(4)),
    )
    pairs = [(0, 1, 1), (2, 3, 1), (4, 5, 0), (0, 4, 1), (4, 5, 1)]
    write(
        tmp_path / "qqp.tsv",
        *(["0", "1", "2", words[i], words[j], str(label)] for i, j, label in pairs),
    )
    monkeypatch.setattr(vectors, "_FOUND", 2)
    monkeypatch.setattr(vectors, "_TRAINED", 1)
    files = {"data_dir": "glue", "sick": "sick.txt", "questions": "qqp.tsv"}
    values = {name: str(tmp_path / path) for name, path in files.items()}
    values |= {"weights": str(tmp_path / "start"), "output_dir": str(tmp_path / "out")}
    monkeypatch.setattr(vectors, "FLAGS", type("Flags", (), {**values, "document": None}))
    return tmp_path


def write(path, *rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


def test_every_run_is_scored_on_everything(work, monkeypatch, capsys):
    commands = []

    def run(program, *command):
        commands.append(command)
        folder = next(each for each in command if each.startswith("--output_dir="))
        folder = Path(folder.removeprefix("--output_dir="))
        shutil.copytree(work / "start", folder / "last_model", dirs_exist_ok=True)

    monkeypatch.setattr(vectors, "run_program", run)
    vectors.main()
    vectors.main()  # run_finetuning goes on with the same, where it was.
    assert commands[:3] == commands[3:]
    lines = capsys.readouterr().out.strip().splitlines()
    rows = [line.split(" | ")[1:] for line in lines[2:6]]
    assert len(rows) == 4 and all(row == rows[0] for row in rows)  # The weights are the same.
    names = ("sentences", "labels", "questions")
    texts = {name: (work / "out" / name / "train.tsv").read_text() for name in names}
    sentences = texts["sentences"].splitlines()
    assert sentences[:2] == ["text", "red car"] and len(sentences) == 6  # Each once.
    assert texts["labels"].splitlines()[2] == "blue boat\tred car\t2.5"
    # Duplicates that share no question with those to be found.
    assert texts["questions"] == "text\tpair\ntall tree\tsmall dog\n"
    assert "--label_scale=5" in commands[1] and "--label_scale=5" not in commands[2]


def test_too_few_questions_are_refused(work):
    write(work / "qqp.tsv", ["0", "1", "2", "a", "b", "1"])
    with pytest.raises(UserError, match="has 1 duplicates"):
        vectors.main()


def test_another_file_than_sick_is_refused(work):
    write(work / "sick.txt", ["a", "b"], ["1", "2"])
    with pytest.raises(UserError, match="has no columns sentence_A, sentence_B"):
        vectors.main()
