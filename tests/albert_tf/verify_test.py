"""Weights are held to published numbers, or to a page of English; what is wrong is "off"."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import try_to_load_from_cache

from albert_tf import AlbertPretrainer, MaskFiller, get_preset, preset_vocabulary, verify
from albert_tf.checkpoints import huggingface
from albert_tf.pretrained.hub import PUBLISHED
from data_pipeline.tokenizers.loading import load_tokenizer

SMALL = "albert-small-en"
KERASHUB = Path(__file__).parents[1] / "goldens" / "kerashub" / "masked_lm"
GOLDEN = dict(np.load(KERASHUB / "outputs.npz"))  # The second text has one segment.


@pytest.fixture
def verified(result_of):
    """Arguments -> exit code, and the first words of the lines."""

    def run(*arguments):
        result = result_of("albert_tf.verify", *arguments)
        return result.returncode, [line[:3].strip() for line in result.stdout.splitlines()]

    return run


@pytest.fixture
def random_weights(tmp_path):
    """Name -> a folder of that name with random weights."""

    def make(name):
        config = get_preset(SMALL).replace(
            hidden_size=32, num_attention_heads=2, num_hidden_layers=1, intermediate_size=32
        )
        huggingface.save(AlbertPretrainer(config), str(tmp_path / name))
        shutil.copy(preset_vocabulary(SMALL), tmp_path / name)
        return str(tmp_path / name)

    return make


def test_the_shipped_weights_know_the_page(verified):
    assert verified(SMALL) == (0, ["ok", "ok"])


def test_random_weights_do_not(verified, random_weights):
    assert verified(f"--model={random_weights('some-weights')}") == (1, ["off", "off"])


@pytest.mark.parametrize("name", json.loads(verify.PUBLISHED.read_text()))
def test_other_weights_of_a_published_name_are_off(verified, random_weights, name):
    count = {"albert-base-v2": 6, "bert-base-uncased": 2}[name]
    assert verified(f"{random_weights(name)}/") == (1, ["off"] * count)


def test_the_real_weights(verified):
    real = PUBLISHED["albert-base-v2"]
    name, revision = huggingface.WEIGHTS_FILE, real.revision
    if not isinstance(try_to_load_from_cache(real.repository, name, revision=revision), str):
        pytest.skip(
            "NOT TESTED: the weights of albert-base-v2 are not in the Hugging Face cache, so the "
            "published numbers were compared with wrong weights only"
        )
    assert verified("albert-base-v2") == (0, ["ok"] * 6)


@pytest.mark.parametrize(
    ("output", "first", "values"),
    [
        ("sequence_output", [1, 1], GOLDEN["sequence_output"][1, 1:3, 1:3]),
        ("pooled_output", [0], GOLDEN["pooled_output"][1, :4]),
        ("masked_lm_logits", [3, 0], GOLDEN["logits"][1, :1, :2]),
    ],
)
def test_outputs_are_compared_at_their_places(output, first, values):
    model = AlbertPretrainer.from_preset(str(KERASHUB))
    ids, mask = (GOLDEN[name][1] for name in ("token_ids", "padding_mask"))
    entry = {"output": output, "input_word_ids": ids, "input_mask": mask}
    entry |= {"first": first, "values": values}
    assert verify.difference(entry, model) < 5e-5
    assert verify.difference({**entry, "first": [place + 1 for place in first]}, model) > 1e-2
    assert verify.difference({**entry, "first": [30_000] * len(first)}, model) == math.inf
    assert verify.difference({**entry, "input_word_ids": [30_000] * len(ids)}, model) == math.inf


def test_words_and_ids_are_compared():
    fill, tokenizer = MaskFiller(SMALL), load_tokenizer(preset_vocabulary(SMALL))
    text = "He studied at the [MASK] of Oxford."
    words = [word for word, _ in fill(text, top_k=3)[0]]
    ids = [[2, *tokenizer.encode("A cat."), 3]]
    rows = [
        {"text": text, "words": words},
        {"text": text, "words": words[::-1]},
        {"texts": ["A cat."], "ids": ids},
        {"texts": ["A dog."], "ids": ids},
    ]
    entries = [{"source": "README.md", **row} for row in rows]
    assert [holds for holds, _ in verify.compare(entries, fill, tokenizer)] == [True, False] * 2


def test_every_number_has_a_source_and_the_page_its_blanks():
    for entries in json.loads(verify.PUBLISHED.read_text()).values():
        assert all(entry["source"] for entry in entries)
    page = verify.PAGE.read_text()
    assert page.count("[") == 10 and len(page.split("\n")) > 300
