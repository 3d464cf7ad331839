"""What the demonstration asks, and what it makes of the answers; the server is a stand-in."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from data_pipeline.errors import UserError
from demo import query


@pytest.fixture
def demonstration(tmp_path, monkeypatch):
    """(difference by REST, by TF Hub) -> runs the program on two examples; gRPC differs by 1e-6."""
    rows = [f"{'ab'[i % 2]}\ttext {i}" for i in range(20)]
    (tmp_path / "dev.tsv").write_text("\n".join(["label\ttext", *rows]))
    monkeypatch.setattr(query, "TICKETS", tmp_path)

    def run(difference, of_hub):
        row = {
            "label": "a",
            "probabilities": [0.5 + difference, 0.5],
            "top_pieces": [["one", "two"]],
        }
        address, halves = {"rest": "http://h:1", "grpc": "h:2"}, np.full([16, 2], 0.5)
        for name, stand_in in {
            "local_server": lambda *_: contextlib.nullcontext(address),
            "keras_probabilities": lambda *_: halves,
            "predict_rest": lambda url, model, texts: [row] * len(texts),
            "predict_grpc": lambda *_: {"probabilities": halves - 1e-6},
            "hub_differences": lambda *_: {"hub.load": of_hub},
            "FLAGS": SimpleNamespace(demo_dir=str(tmp_path)),
        }.items():
            monkeypatch.setattr(query, name, stand_in)
        query.main()

    return run


def test_answers_are_compared_and_shown(demonstration, tmp_path, capsys):
    demonstration(5e-6, 1e-6)
    found = json.loads((tmp_path / "answers.json").read_text())
    assert found["largest_difference"] == found["differences"]["REST"] == pytest.approx(5e-6)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[:2] == ["text 0 a (should be a)", "text 1 a (should be b)"]
    assert "The value of the [MASK] is true. one two" in shown


@pytest.mark.parametrize(
    ("difference", "of_hub", "said"),
    [
        (2e-5, 9e-5, "REST by 2.0e-05, more than 1e-05."),
        (5e-6, 2e-4, "hub.load by 2.0e-04, more than 1e-04."),
        (5e-6, float("nan"), "hub.load by nan, more than 1e-04."),
    ],
)
def test_answers_that_differ_end_the_program(demonstration, tmp_path, difference, of_hub, said):
    with pytest.raises(UserError) as error:
        demonstration(difference, of_hub)
    assert str(error.value) == f"answers differ from Keras: {said}"
    written = json.loads((tmp_path / "answers.json").read_text())
    assert written["differences"]["REST"] == pytest.approx(difference)
