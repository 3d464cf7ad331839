"""The costs of a configuration, computed, not measured: operations, memory, parameters."""

from __future__ import annotations

from albert_tf.config import AlbertConfig

# Weights, gradient and two optimizer moments, float32.
_BYTES_PER_PARAMETER_IN_TRAINING = 16


def encoder_flops_per_token(config: AlbertConfig, sequence_length: int) -> int:
    """Floating point operations of one forward pass for one token; a multiply-add counts as two."""
    # Sharing saves parameters, not arithmetic: every layer is computed. This counts the
    # products with weights, four H x H and two H x F, and the two of attention, q k^T and
    # probabilities x v, which grow with S; it leaves out norms, activations and the softmax.
    hidden, inner = config.hidden_size, config.intermediate_size
    layer = 2 * (4 * hidden * hidden + 2 * hidden * inner) + 4 * sequence_length * hidden
    projection = 2 * config.embedding_size * hidden if config.has_embedding_projection else 0
    return config.num_hidden_layers * config.inner_group_num * layer + projection


def masked_lm_flops_per_prediction(config: AlbertConfig) -> int:
    """Forward operations of the masked language model head for one masked position."""
    return 2 * config.embedding_size * (config.hidden_size + config.vocab_size)


def pretraining_flops_per_token(
    config: AlbertConfig, sequence_length: int, num_predictions: int
) -> float:
    """Operations of a training step for one token, forward and backward."""
    # The backward pass has two products for each forward one: the gradients of weights and inputs.
    head = masked_lm_flops_per_prediction(config) * num_predictions / sequence_length
    return 3 * (encoder_flops_per_token(config, sequence_length) + head)


def training_bytes(
    config: AlbertConfig, num_parameters: int, batch_size: int, sequence_length: int
) -> int:
    """The approximate number of bytes of a training step on one device, for weights, optimizer and
    stored activations; `num_parameters` counts all replicas on the device, 0 for activations alone.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    # The numbers that layers/ keeps for each token. The measured peak of albert-base grows with the
    # batch as computed here, within about 10 %; with `recompute`, by a fifth more.
    layer = 9 * hidden + 2 * inner + config.num_attention_heads * sequence_length
    num_layers = config.num_hidden_layers * config.inner_group_num
    per_token = num_layers * 2 * hidden + layer if config.recompute else num_layers * layer
    return (
        _BYTES_PER_PARAMETER_IN_TRAINING * num_parameters
        + 4 * per_token * batch_size * sequence_length
    )


def count_parameters(config: AlbertConfig) -> dict[str, int]:
    """Exact numbers of parameters of an AlbertPretrainer by part, without making it."""
    embedding, hidden, inner = config.embedding_size, config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.type_vocab_size + config.max_position_embeddings
    attention = 4 * (hidden * hidden + hidden) + 2 * hidden  # Four dense layers, one norm.
    ffn = 2 * hidden * inner + inner + hidden + 2 * hidden
    projection = embedding * hidden + hidden if config.has_embedding_projection else 0
    output_table = 0 if config.tie_word_embeddings else config.vocab_size * embedding
    return {
        "embeddings": rows * embedding + 2 * embedding,
        "projection": projection,
        "attention": attention * config.num_attention_groups * config.inner_group_num,
        "feed_forward": ffn * config.num_ffn_groups * config.inner_group_num,
        "pooler": hidden * hidden + hidden,
        "masked_lm": hidden * embedding + 3 * embedding + config.vocab_size + output_table,
        "sentence_order": 2 * hidden + 2,
    }


def encoder_parameters(config: AlbertConfig) -> int:
    """The number of parameters of an encoder, including its pooler."""
    parts = count_parameters(config)
    return sum(parts.values()) - parts["masked_lm"] - parts["sentence_order"]
