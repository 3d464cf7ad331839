"""What decides ids beside a vocabulary reaches records, fine-tuning, exports and other formats."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf.checkpoints import huggingface
from albert_tf.models import AlbertClassifier
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.conformance_cases import SMALLEST

GOLDENS = Path(__file__).parent / "goldens" / "tokenizer_folders"
ROWS = [json.loads(line) for line in (GOLDENS / "ids.jsonl").read_bytes().splitlines()]
# Not those in which the rules of google and Hugging Face differ.
TEXTS = ["The Cat sat in Zürich.", "Hello World! The Zürich café", "我们在2010年 用了iPhone手机！"]


def ids_of(vocabulary, **config):
    """The ids of TEXTS by transformers."""
    (row,) = (row for row in ROWS if (row["vocabulary"], row["config"]) == (vocabulary, config))
    return [row["ids"][text] for text in TEXTS]


@pytest.fixture
def run(result_of):
    """Program, the exit code that it has to have, and its flags -> what it says."""

    def run(program, code=0, **flags):
        result = result_of(program, *(f"--{name}={value}" for name, value in flags.items()))
        assert result.returncode == code and "Traceback" not in result.stderr, result.stderr
        return result.stderr if code else result.stdout

    return run


def folder_of_transformers(folder, vocabulary, **config):
    """A folder as transformers writes it: a classifier with random weights, and its tokenizer."""
    folder.mkdir()
    pieces = load_tokenizer(str(GOLDENS / vocabulary)).vocab_size
    architecture = SMALLEST.replace(vocab_size=pieces, max_position_embeddings=64)
    huggingface.save(AlbertClassifier(architecture, 2), str(folder), ["no", "yes"])
    shutil.copy(GOLDENS / vocabulary, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def ids_in_records(folder):
    """All ids of dynamic records, which hold no special pieces."""
    found = []
    for path in sorted(folder.glob("*.tfrecord")):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            columns = tf.train.Example.FromString(record).features.feature
            found.extend(columns["token_ids"].int64_list.value)
    return found


@pytest.mark.parametrize(
    ("vocabulary", "config"),
    [
        ("spiece.model", {"do_lower_case": False, "keep_accents": True}),
        pytest.param(
            "vocab.txt",
            {"strip_accents": False, "tokenize_chinese_chars": False},
            marks=pytest.mark.table,
        ),
    ],
)
def test_a_folder_of_transformers_on_all_ways(tmp_path, run, eagerly, vocabulary, config):
    """Records, fine-tuning, conversion, export and back: the ids are those of transformers."""
    expected = ids_of(vocabulary, **config)
    theirs = folder_of_transformers(tmp_path / "theirs", vocabulary, **config)
    stored = load_tokenizer(str(theirs / vocabulary)).settings_json()
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    rows = [f"{text}\t{label}" for text in TEXTS for label in ("yes", "no")]
    (tmp_path / "rows.tsv").write_text("\n".join(["text\tlabel", *rows, ""]), "utf-8")

    run(
        "data_pipeline.create_pretraining_data",
        input=tmp_path / "texts.txt",
        vocab_file=theirs / vocabulary,
        output_dir=tmp_path / "records",
        max_seq_length=64,
        short_seq_prob=0,
        num_processes=1,
    )
    every = list(itertools.chain.from_iterable(expected))
    assert sorted(ids_in_records(tmp_path / "records")) == sorted(every)
    assert (tmp_path / "records" / "tokenizer_settings.json").read_bytes() == stored

    tuned = {"task": "tsv", **dict.fromkeys(["train_file", "dev_file"], tmp_path / "rows.tsv")}
    tuned |= {"num_train_steps": 1, "train_batch_size": 2, "max_seq_length": 32}
    tuned |= {"distribution": "one_device", "warmup_proportion": 0, "fast": "off"}
    tuned |= {"init_checkpoint": theirs}
    with eagerly():
        run("albert_tf.run_finetuning", output_dir=tmp_path / "run", **tuned)
    model = tmp_path / "run" / "model"
    assert (model / "tokenizer_settings.json").read_bytes() == stored
    other = str(not json.loads(stored)["lower"]).lower()
    message = run(
        "albert_tf.run_finetuning",
        code=2,
        output_dir=tmp_path / "other",
        lower_case=other,
        **{**tuned, "init_checkpoint": model},
    )
    assert "--lower_case) contradicts" in message and "tokenizer_settings.json" in message

    native = tmp_path / "native"
    run("albert_tf.convert", input=theirs, output=native, format="native")
    assert (native / "tokenizer_settings.json").read_bytes() == stored
    exported = {"model_dir": native, "task": "preprocessor", "output_dir": tmp_path / "export"}
    assert "contradicts" in run("export.run_export", 2, lower_case=other, **exported)
    run("export.run_export", **exported)
    answer = tf.saved_model.load(str(tmp_path / "export" / "1"))(tf.constant(TEXTS))
    lengths = tf.reduce_sum(answer["input_mask"], axis=1).numpy()
    rows = [row[1 : n - 1].tolist() for row, n in zip(answer["input_word_ids"].numpy(), lengths)]
    assert rows == expected

    back = tmp_path / "back"
    run("albert_tf.convert", input=native, output=back, format="huggingface")
    assert (back / "tokenizer_settings.json").read_bytes() == stored
    said = json.loads((back / "tokenizer_config.json").read_text())
    assert said.items() >= {"do_lower_case": True, **config}.items()
    (back / "tokenizer_settings.json").unlink()  # transformers reads the other file alone.
    assert load_tokenizer(str(back / vocabulary)).settings_json() == stored
