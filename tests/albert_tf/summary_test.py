"""`summary()`: the parts, the shapes of what they give, and how the layers share their weights."""

import re

import pytest

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertPretrainer, AlbertTokenClassifier
from tests.conformance_cases import BASE, CONFIGS


def summary(model, **arguments) -> str:
    lines: list[str] = []
    model.summary(line_length=120, print_fn=lambda line, **_: lines.append(line), **arguments)
    return "\n".join(lines)


def shapes(text: str) -> dict[str, str]:
    """Name of a part -> the shape beside it."""
    return dict(re.findall(r"^\W*(\w+) \(\w+\) +(\([^)]*\)|multiple)", text, re.M))


def test_the_parts_of_an_encoder():
    assert shapes(summary(AlbertEncoder(BASE))) == {
        "embeddings": "(None, None, 16)",
        "transformer": "(None, None, 16)",
        "group_0_inner_0_attention": "(None, None, 16)",
        "group_0_inner_0_ffn": "(None, None, 16)",
        "pooler": "(None, 16)",
    }


@pytest.mark.parametrize(
    ("model", "heads"),
    [
        (AlbertPretrainer(BASE), {"masked_lm": "(None, None, 40)", "sentence_order": "(None, 2)"}),
        (AlbertClassifier(BASE, 3), {"classification": "(None, 3)"}),
        (AlbertTokenClassifier(BASE, 5), {"classification": "(None, None, 5)"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_heads(model, heads):
    found = shapes(summary(model))
    assert found["encoder"] == "multiple"  # It has several outputs.
    assert {name: found[name] for name in heads} == heads
    assert "transformer" not in summary(model, expand_nested=False).split("Total")[0]


@pytest.mark.parametrize(
    ("config_name", "last_line"),
    [
        ("all shared", "2 layers use 1 attention block and 1 feed-forward block."),
        ("attention shared", "2 layers use 1 attention block and 2 feed-forward blocks."),
        ("none shared", "2 layers use 2 attention blocks and 2 feed-forward blocks."),
        (
            "two groups of two",
            "3 layers of 2 inner ones use 4 attention blocks and 4 feed-forward blocks.",
        ),
    ],
)
def test_how_the_layers_share(config_name, last_line):
    config, attention, ffn = CONFIGS[config_name]
    text = summary(AlbertEncoder(config))
    assert text.splitlines()[-1] == f"The transformer's {last_line}"
    assert text.count("(AttentionBlock)") == attention
    assert text.count("(FeedForwardBlock)") == ffn
