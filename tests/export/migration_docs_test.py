"""The Python of docs/migration.md: this project's lines, and another library's where it is."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import google, huggingface, vocabulary
from albert_tf.huggingface_config import as_groups

DOCUMENT = Path(__file__).parents[2] / "docs" / "migration.md"
PEERS = ("transformers", "albert", "official", "keras_hub", "tensorflow_hub")
TOKENS = {"ids": [[2, 11, 12, 3]], "mask": [[1, 1, 1, 1]], "types": [[0, 0, 0, 0]]}


def sections():
    """[(the other library's lines, ours)] in the order of PEERS."""
    found = DOCUMENT.read_text(encoding="utf-8").split("\n## ")[1:]
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


@pytest.fixture
def run(folders, exports, model_dirs):
    """(lines) -> `pooled`, with small models in place of the published ones."""
    paths = {
        "work/models/preprocessor/1": exports.paths["preprocessor"],
        "work/models/encoder/1": exports.paths["encoder"],
        "https://tfhub.dev/tensorflow/albert_en_preprocess/3": exports.paths["preprocessor"],
        "https://tfhub.dev/tensorflow/albert_en_base/3": exports.paths["encoder"],
        "albert_base/": f"{folders}/google/",
        "albert/albert-base-v2": folders / "hub",
        "albert_base_en_uncased": folders / "hub",
        'from_preset("albert-base-v2"': f'from_preset("{folders}/hub"',
        'get_preset("albert-base-v2")': 'get_preset("albert-tiny")',
        "max_seq_length=512": "max_seq_length=64",
    }

    def execute(lines):
        for published, small in paths.items():
            lines = lines.replace(published, str(small))
        names = {name: tf.constant(value) for name, value in TOKENS.items()}
        exec(lines, names)
        return np.asarray(names["pooled"])

    return execute


def test_every_section_has_both():
    assert [len(section) for section in sections()] == [2] * len(PEERS)
    assert all(len(re.findall(r"^.", lines, re.M)) == 4 for both in sections() for lines in both)
    for peer, (theirs, ours) in zip(PEERS, sections()):
        assert re.search(rf"^(import|from) {peer}\b", theirs), peer
        assert "albert_tf" in ours or peer == "tensorflow_hub"


@pytest.mark.parametrize("peer", PEERS)
def test_our_lines(run, exports, peer):
    pooled = run(sections()[PEERS.index(peer)][1])
    own = exports.models["pretrainer"].encoder
    if peer == "official":  # With random weights.
        assert pooled.shape[0] == 1
    elif peer == "albert":
        inputs = dict(zip(("input_word_ids", "input_mask", "input_type_ids"), TOKENS.values()))
        expected = own({name: tf.constant(value) for name, value in inputs.items()})
        np.testing.assert_allclose(pooled, expected["pooled_output"], atol=1e-5)
    else:
        ids = [[2, *exports.vocabulary.encode("a cat sat."), 3]]
        expected = own({"input_word_ids": tf.constant(ids)})["pooled_output"]
        np.testing.assert_allclose(pooled, expected, atol=1e-5)


@pytest.mark.parametrize("peer", PEERS)
def test_their_lines_give_the_same(run, peer):
    if importlib.util.find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed")
    theirs, ours = sections()[PEERS.index(peer)]
    np.testing.assert_allclose(run(theirs), run(ours), atol=1e-5)
