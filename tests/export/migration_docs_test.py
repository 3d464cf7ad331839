"""The Python of docs/migration.md: this project's lines, and another library's where it is.

That is here, or in the environments of benchmarks/make_peer_environments.sh:

    ALBERT_TF_PEERS=benchmarks/.peers python -m pytest tests/export/migration_docs_test.py
"""

import importlib.util
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import google, huggingface, vocabulary
from albert_tf.checkpoints.huggingface_config import as_groups
from tests.export.conftest import run_in_clean_environment

DOCUMENT = Path(__file__).parents[2] / "docs" / "migration.md"
PEERS = ("transformers", "albert", "official", "keras_hub", "tensorflow_hub")
FOLDER = os.path.abspath(os.environ["ALBERT_TF_PEERS"]) if "ALBERT_TF_PEERS" in os.environ else None
ENVIRONMENTS = {"transformers": "tf", "official": "tf", "keras_hub": "keras"}
GARDEN = PEERS.index("official")
POOLED = """
inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
pooled = model(inputs)["pooled_output"]
"""
TOKENS = {"ids": [[2, 11, 12, 3]], "mask": [[1, 1, 1, 1]], "types": [[0, 0, 0, 0]]}


def sections():
    """[(the other library's lines, ours)] in the order of PEERS; the Garden's has two more."""
    found = DOCUMENT.read_text(encoding="utf-8").split("\n## ")[1 : 1 + len(PEERS)]
    return [tuple(re.findall(r"^```python\n(.*?)^```", each, re.M | re.S)) for each in found]


@pytest.fixture(scope="module")
def folders(keras_models, vocabulary_dir, tmp_path_factory):
    """The model that is exported as encoder and preprocessor, in the formats of the others."""
    root, model = tmp_path_factory.mktemp("migration"), keras_models["pretrainer"]
    (root / "hub").mkdir()
    (root / "google").mkdir()
    huggingface.save(model, str(root / "hub"), None, "float32")
    google.save(model, str(root / "google" / "model.ckpt-best"))
    as_groups(model.config).to_json_file(str(root / "google" / "albert_config.json"))
    for name, stored in (("hub", vocabulary.SENTENCEPIECE), ("google", google.VOCABULARY)):
        content = (vocabulary_dir / "spiece.model").read_bytes()
        (root / name / stored).write_bytes(content)
    return root


def python_with(peer):
    """The interpreter that has a library; the test is skipped where none is known."""
    if importlib.util.find_spec(peer) is not None:
        return sys.executable
    if FOLDER is None or peer not in ENVIRONMENTS:
        pytest.skip(f"{peer} is not installed")
    return os.path.join(FOLDER, ENVIRONMENTS[peer], "bin", "python")


@pytest.fixture(scope="module")
def garden_checkpoint(folders):
    """The google-research checkpoint, converted by the Garden's program."""
    google_dir, garden_dir = folders / "google", folders / "garden"
    garden_dir.mkdir()
    run_in_clean_environment(
        python_with("official"),
        *("-m", "official.nlp.tools.tf2_albert_encoder_checkpoint_converter"),
        f"--albert_config_file={google_dir / 'albert_config.json'}",
        f"--checkpoint_to_convert={google_dir / 'model.ckpt-best'}",
        f"--converted_checkpoint_path={garden_dir / 'encoder.ckpt'}",
    )


def garden_config(config):
    """The Garden's configuration, as Python."""
    fields = {
        "vocab_size": config.vocab_size,
        "embedding_width": config.embedding_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
    }
    return f"encoders.AlbertEncoderConfig(**{fields})"


@pytest.fixture
def run(folders, exports, tmp_path, monkeypatch):
    """(lines, python) -> `pooled`, with small models in place of the published ones."""
    monkeypatch.chdir(tmp_path)
    config = exports.models["pretrainer"].config
    paths = {
        "work/models/preprocessor/1": exports.paths["preprocessor"],
        "work/models/encoder/1": exports.paths["encoder"],
        "https://tfhub.dev/tensorflow/albert_en_preprocess/3": exports.paths["preprocessor"],
        "https://tfhub.dev/tensorflow/albert_en_base/3": exports.paths["encoder"],
        "albert_base/encoder.ckpt": folders / "garden" / "encoder.ckpt",
        "albert_base/": f"{folders}/google/",
        "albert/albert-base-v2": folders / "hub",
        'Preprocessor.from_preset("albert_base_en_uncased"': (
            f'Preprocessor.from_preset("{folders}/hub", sequence_length=64'
        ),
        "albert_base_en_uncased": folders / "hub",
        'from_preset("albert-base-v2"': f'from_preset("{folders}/hub"',
        'get_preset("albert-base-v2")': "config",
        'type="albert"': f'type="albert", albert={garden_config(config)}',
        "max_seq_length=512": "max_seq_length=64",
    }

    def execute(lines, python=sys.executable):
        for published, small in paths.items():
            lines = lines.replace(published, str(small))
        if python != sys.executable:
            tokens = "".join(f"{name} = tf.constant({value})\n" for name, value in TOKENS.items())
            save = '__import__("numpy").save("pooled.npy", pooled)'
            run_in_clean_environment(
                python, "-c", f"import tensorflow as tf\n{tokens}{lines}\n{save}"
            )
            return np.load("pooled.npy")
        names = {name: tf.constant(value) for name, value in TOKENS.items()}
        names.update(tf=tf, config=config)
        exec(lines, names)
        return np.asarray(names["pooled"])

    return execute


def pooled_of_tokens(exports):
    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: tf.constant(value) for name, value in zip(names, TOKENS.values())}
    return exports.models["pretrainer"].encoder(inputs)["pooled_output"]


def test_every_section_has_both():
    lengths = {peer: len(section) for peer, section in zip(PEERS, sections(), strict=True)}
    assert lengths == {**dict.fromkeys(PEERS, 2), "official": 4}
    for peer, (theirs, ours, *_) in zip(PEERS, sections()):
        assert all(len(re.findall(r"^.", lines, re.M)) == 4 for lines in (theirs, ours))
        assert re.search(rf"^(import|from) {peer}\b", theirs), peer
        assert "albert_tf" in ours or peer == "tensorflow_hub"


@pytest.mark.parametrize("peer", PEERS)
def test_our_lines(run, exports, peer):
    pooled = run(sections()[PEERS.index(peer)][1])
    if peer in ("albert", "official"):
        expected = pooled_of_tokens(exports)
    else:
        ids = [[2, *exports.vocabulary.encode("a cat sat."), 3]]
        own = exports.models["pretrainer"].encoder
        expected = own({"input_word_ids": tf.constant(ids)})["pooled_output"]
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


@pytest.mark.parametrize("peer", PEERS)
def test_their_lines_give_the_same(run, request, peer):
    python = python_with(peer)
    if peer == "official":
        request.getfixturevalue("garden_checkpoint")
    theirs, ours, *_ = sections()[PEERS.index(peer)]
    np.testing.assert_allclose(run(theirs, python), run(ours), atol=1e-5)


def test_weights_of_the_garden_are_taken_over(run, exports):
    """Weights in the Garden's order, with its shapes: heads are an axis."""
    encoder = exports.models["pretrainer"].encoder
    heads = encoder.config.num_attention_heads
    word, kind, position, *others = encoder.variables
    weights = []
    for variable in (word, position, kind, *others):
        shape = variable.shape.as_list()
        if re.search("_attention/(query|key|value)/", variable.name):
            shape[-1:] = [heads, -1]
        elif "_attention/output/kernel" in variable.name:
            shape[:1] = [heads, -1]
        weights.append(variable.numpy().reshape(shape))
    np.savez("garden.npz", *weights)
    pooled = run(sections()[GARDEN][3] + POOLED)
    np.testing.assert_allclose(pooled, pooled_of_tokens(exports), atol=1e-5)


def test_the_garden_writes_weights_that_are_taken_over(run, request):
    python = python_with("official")
    request.getfixturevalue("garden_checkpoint")
    theirs, _, save, load = sections()[GARDEN]
    pooled = run(theirs + save, python)
    np.testing.assert_allclose(run(load + POOLED), pooled, atol=1e-5)
