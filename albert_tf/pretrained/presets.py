"""Named architectures: published ALBERTs, the paper's BERT baselines, BERTs, and small models."""

from __future__ import annotations

from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError


def _size(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    """The fields of an AlbertConfig for a model size: H, L and N; F is 4 H."""
    return dict(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )


_SIZES = {
    "base": _size(768, 12, 12),
    "large": _size(1024, 24, 16),
    "xlarge": _size(2048, 24, 16),
    "xxlarge": _size(4096, 12, 64),
}
_VERSIONS = ("v1", "v2")
_CHINESE_VOCABULARY = 21128  # BERT's WordPiece vocabulary; Chinese ALBERTs have no SentencePiece.


def _english(size: str, version: str) -> AlbertConfig:
    # Version 1 was trained with dropout 0.1, except xxlarge, which was better without it (table 8
    # of the paper). Version 2 was trained without dropout.
    dropout = 0.1 if version == "v1" and size != "xxlarge" else 0.0
    return AlbertConfig(
        vocab_size=30000,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **_SIZES[size],
    )


def _bert(hidden: int, layers: int) -> AlbertConfig:
    """A BERT baseline of the paper: same vocabulary, H / 64 heads, no sharing, E = H."""
    return AlbertConfig(
        vocab_size=30000,
        embedding_size=hidden,
        parameter_sharing="none",
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        **_size(hidden, layers, hidden // 64),
    )


def _google_bert(hidden: int, layers: int, **changes: Any) -> AlbertConfig:
    """A BERT or ELECTRA of google-research with the uncased vocabulary, as on the hub."""
    bert = _bert(hidden, layers).replace(vocab_size=30522, hidden_act="gelu_erf")
    return bert.replace(**changes)


PRESETS: dict[str, AlbertConfig] = {
    **{
        f"albert-{size}-{version}": _english(size, version)
        for version in _VERSIONS
        for size in _SIZES
    },
    **{
        f"albert-{size}-zh": AlbertConfig(vocab_size=_CHINESE_VOCABULARY, **_SIZES[size])
        for size in _SIZES
    },
    "bert-base": _bert(768, 12),
    "bert-large": _bert(1024, 24),
    "bert-xlarge": _bert(2048, 24),
    "bert-base-uncased": _google_bert(768, 12),
    "bert-tiny-uncased": _google_bert(128, 2),
    "bert-mini-uncased": _google_bert(256, 4),
    "bert-small-uncased": _google_bert(512, 4),
    "bert-medium-uncased": _google_bert(512, 8),
    "electra-small-discriminator": _google_bert(256, 12, embedding_size=128),
    # The architecture of the shipped weights: see `loading.shipped_folder`.
    "albert-small-en": AlbertConfig(vocab_size=12000, **_size(512, 4, 8)),
    # Architectures for experiments; there are no published weights for them.
    "albert-small": AlbertConfig(vocab_size=8000, **_size(256, 4, 4)),
    "albert-tiny": AlbertConfig(vocab_size=8000, **_size(128, 3, 4)),
}
"""Name -> architecture."""

# Presets that are easily mistaken for published weights, and the explanation for messages.
PAPER_BASELINES = ("bert-base", "bert-large", "bert-xlarge")
BASELINE = (
    "It is a baseline of the ALBERT paper, with a vocabulary of 30,000 and no weights; "
    "google-research's BERT is bert-base-uncased."
)


def get_preset(name: str) -> AlbertConfig:
    """The configuration of a preset; an unknown name raises a UserError that lists all names."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is unknown. Known presets: {', '.join(PRESETS)}.")
    return PRESETS[name]
