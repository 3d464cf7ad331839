"""Hugging Face's config.json: what comes over from it, what goes back, what is refused."""

import dataclasses

import pytest

from albert_tf.checkpoints.huggingface_config import as_groups, to_huggingface
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError


@pytest.mark.parametrize(
    "theirs, ours",
    [("gelu_new", "gelu"), ("gelu_pytorch_tanh", "gelu"), ("gelu", "gelu_erf"), ("relu", "relu")],
)
def test_activations_keep_their_function_not_their_name(tiny_config, theirs, ours):
    values = {**to_huggingface(tiny_config), "hidden_act": theirs, "bos_token_id": 7}
    assert AlbertConfig.from_dict(values) == tiny_config.replace(hidden_act=ours)


def test_missing_keys_are_hugging_faces_defaults():
    config = AlbertConfig.from_dict({"model_type": "albert"})
    assert (config.vocab_size, config.hidden_act) == (30000, "gelu")
    assert (config.num_hidden_groups, config.inner_group_num) == (1, 1)


def test_unshared_layers_are_groups():
    config = AlbertConfig(
        vocab_size=50, hidden_size=8, num_attention_heads=2, num_hidden_layers=3,
        intermediate_size=16, parameter_sharing="none",
    )  # fmt: skip
    values = to_huggingface(config)
    assert values["num_hidden_groups"] == 3 and "parameter_sharing" not in values
    assert AlbertConfig.from_dict(values) == as_groups(config)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2', not one of albert, bert, electra"),
        ({"model_type": ["bert"]}, "model_type is \\['bert'\\], not one of albert, bert, electra"),
        ({"position_embedding_type": "relative_key"}, "'relative_key' is not supported"),
        ({"position_embedding_type": None}, 'only "absolute": the outputs of'),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads {'0': \\[1\\]} is not supported, only {}"),
        ({"quantization_config": {"bits": 8}}, "quantization_config .* not supported, only null"),
        ({"hidden_act": "swish"}, "c.json: hidden_act 'swish' is not one of gelu_pytorch_tanh, "),
        ({"hidden_act": []}, "c.json: hidden_act \\[\\] is not one of gelu_pytorch_tanh, "),
        ({"num_hidden_layers": 22, "num_hidden_groups": 22}, "layer 15 is in another group"),
    ],
)
def test_what_is_not_computed_here_is_refused(tiny_config, change, message):
    with pytest.raises(UserError, match=message):
        AlbertConfig.from_dict({**to_huggingface(tiny_config), **change}, "c.json")


def test_no_field_of_ours_slips_into_their_file(tiny_config):
    """Software that does not know a key ignores it, and would compute another model."""
    known = {field.name for field in dataclasses.fields(AlbertConfig)}
    ours = {"parameter_sharing", "recompute", "always_project_embeddings", "tie_word_embeddings"}
    theirs = {"model_type", "position_embedding_type", "pad_token_id", "bos_token_id"}
    assert to_huggingface(tiny_config).keys() == known - ours | theirs | {"eos_token_id"}
    assert known - ours == {
        *("vocab_size", "embedding_size", "hidden_size", "intermediate_size", "hidden_act"),
        *("num_hidden_layers", "num_hidden_groups", "inner_group_num", "num_attention_heads"),
        *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        *("max_position_embeddings", "type_vocab_size", "initializer_range", "layer_norm_eps"),
    }


def test_nothing_shared_said_with_groups(tiny_config):
    unshared = tiny_config.replace(parameter_sharing="none")
    assert as_groups(unshared) == tiny_config.replace(num_hidden_groups=2)
    assert as_groups(tiny_config) is tiny_config
    with pytest.raises(UserError, match="with 22 layers the reference's formula does not give"):
        as_groups(unshared.replace(num_hidden_layers=22))


# Keys of transformers 4.57.6 with values that are not its defaults, none of which changed an answer
# of AlbertForMaskedLM or AlbertForSequenceClassification by more than rounding (3e-6).
HARMLESS = {
    "_name_or_path": "x", "add_cross_attention": True, "architectures": ["x"],
    "auto_map": {"x": "y"}, "bad_words_ids": [[1]], "begin_suppress_tokens": [1], "bos_token_id": 1,
    "chunk_size_feed_forward": 1, "cross_attention_hidden_size": 3, "decoder_start_token_id": 3,
    "diversity_penalty": 0.5, "do_sample": True, "down_scale_factor": 1, "dtype": "float16",
    "early_stopping": True, "encoder_no_repeat_ngram_size": 1, "eos_token_id": 4,
    "exponential_decay_length_penalty": [1, 1.1], "finetuning_task": "sst-2",
    "forced_bos_token_id": 1, "forced_eos_token_id": 1, "gap_size": 0,
    "gradient_checkpointing": True, "initializer_range": 0.1, "is_decoder": True,
    "is_encoder_decoder": True, "label2id": {"a": 0, "b": 1}, "layers_to_keep": [],
    "length_penalty": 2.0, "max_length": 21, "min_length": 1, "my_own_key": [1],
    "net_structure_type": 0, "no_repeat_ngram_size": 1, "num_beam_groups": 2, "num_beams": 2,
    "num_memory_blocks": 0, "num_return_sequences": 2, "output_attentions": True,
    "output_hidden_states": True, "output_scores": True, "pad_token_id": 1, "prefix": "x",
    "remove_invalid_values": True, "repetition_penalty": 1.1, "return_dict": False,
    "return_dict_in_generate": True, "sep_token_id": 3, "suppress_tokens": [1],
    "task_specific_params": {"a": 1}, "temperature": 1.1, "tf_legacy_loss": True,
    "tie_encoder_decoder": True, "tokenizer_class": "x", "top_k": 51, "top_p": 0.9,
    "torch_dtype": "float16", "torchscript": True, "transformers_version": "x", "typical_p": 0.9,
    "use_bfloat16": True, "use_cache": False,
}  # fmt: skip


def test_keys_that_change_no_answer(tiny_config):
    found = AlbertConfig.from_dict({**to_huggingface(tiny_config), **HARMLESS})
    assert found == tiny_config.replace(initializer_range=0.1)
