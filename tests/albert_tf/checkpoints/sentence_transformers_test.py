"""The files of sentence-transformers, versions 2 to 6, as its own code writes and reads them."""

import json

import pytest

from albert_tf.checkpoints.sentence_transformers import Pooling, read_length, read_pooling
from albert_tf.errors import UserError

POOLING, PROMPTS, TOKENIZER = (
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
)


@pytest.fixture
def folder(tmp_path):
    """(file -> its values) -> a folder with these files and the modules of most models."""

    def write(files):
        steps = {"": "base.Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
        modules = [
            {"path": path, "type": f"sentence_transformers.{kind}"} for path, kind in steps.items()
        ]
        (tmp_path / "1_Pooling").mkdir()
        for name, values in {"modules.json": modules, **files}.items():
            (tmp_path / name).write_text(json.dumps(values))
        return str(tmp_path)

    return write


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ("mean", True, [])),
        ({"pooling_mode_cls_token": True, "include_prompt": True}, ("first", True, [])),
        ({"pooling_mode": "cls", "embedding_dimension": 8}, ("first", True, [])),
        ({"pooling_mode": ["mean"], "pooling_mode_cls_token": True}, ("mean", True, [])),
        ({"word_embedding_dimension": 8}, ("mean", True, [])),
        ({"pooling_mode": ["cls", "max"]}, ("mean", True, ["Pooling (cls, max)"])),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, ("mean", True, ["Pooling (mean_sqrt_len)"])),
    ],
)
def test_modes_of_old_and_new_versions(folder, config, expected):
    assert read_pooling(folder({POOLING: config})) == Pooling(*expected)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({PROMPTS: {"prompts": {"query": "query: "}, "default_prompt_name": None}}, []),
        ({PROMPTS: {"prompts": {"query": ""}, "default_prompt_name": "query"}}, []),
        (
            {PROMPTS: {"prompts": {"query": "find: "}, "default_prompt_name": "query"}},
            ["the prompt 'find: ' before every text"],
        ),
        ({"sentence_bert_config.json": {"do_lower_case": True}}, []),  # So does the tokenizer.
        (
            {
                "sentence_bert_config.json": {"do_lower_case": True},
                TOKENIZER: {"do_lower_case": False},
            },
            ["do_lower_case"],
        ),
    ],
)
def test_what_happens_to_texts_is_named(folder, files, expected):
    assert read_pooling(folder({POOLING: {}, **files})).others == expected


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (PROMPTS, {"prompts": ["query: "], "default_prompt_name": "query"}),
        (PROMPTS, {"prompts": {"query": "query: "}, "default_prompt_name": ["query"]}),
        (POOLING, {"pooling_mode": 3}),
    ],
)
def test_values_of_other_types(folder, name, values):
    with pytest.raises(UserError, match=f"{name}.*Copy it again"):
        read_pooling(folder({POOLING: {}, name: values}))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"sentence_bert_config.json": {"max_seq_length": 8}, TOKENIZER: {}}, 8),
        ({"sentence_albert_config.json": {"max_seq_length": 8}}, 8),
        ({TOKENIZER: {"model_max_length": 8}}, 8),
        ({TOKENIZER: {"model_max_length": 512}}, None),
        ({TOKENIZER: {"model_max_length": int(1e30)}}, None),
    ],
)
def test_lengths(folder, files, expected):
    assert read_length(folder(files), 16) == expected


@pytest.mark.parametrize(
    "files",
    [{"sentence_bert_config.json": {"max_seq_length": "8"}}, {TOKENIZER: {"model_max_length": 2}}],
)
def test_what_is_no_length(folder, files):
    with pytest.raises(UserError, match="must be an integer from 3 up, not"):
        read_length(folder(files), 16)
