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

    def rest(url, model, texts):
        assert url == "http://h:1"
        if model == "masked_lm":
            return [{"top_pieces": [["one", "two"]]} for _ in texts]
        assert texts == [f"text {i}" for i in range(16)]
        return [{"label": "a", "probabilities": [0.5 + state.difference, 0.5]} for _ in texts]

    def grpc(address, model, inputs):
        assert (address, model) == ("h:2", "classifier")
        return {"probabilities": np.full([len(inputs["text"]), 2], 0.5 - 1e-6)}

    state = SimpleNamespace(difference=0.0, of_hub=0.0)
    address = {"rest": "http://h:1", "grpc": "h:2"}
    monkeypatch.setattr(query, "local_server", lambda *_: contextlib.nullcontext(address))
    monkeypatch.setattr(query, "keras_probabilities", lambda _, rows: np.full([len(rows), 2], 0.5))
    monkeypatch.setattr(query, "predict_rest", rest)
    monkeypatch.setattr(query, "predict_grpc", grpc)
    monkeypatch.setattr(query, "hub_differences", lambda *_: {"hub.load": state.of_hub})
    monkeypatch.setattr(query, "FLAGS", SimpleNamespace(demo_dir=str(tmp_path)))

    def run(difference, of_hub=1e-6):
        state.difference, state.of_hub = difference, of_hub
        query.main()
        return json.loads((tmp_path / "answers.json").read_text())

    return run


def test_answers_are_compared_and_shown(demonstration, capsys):
    found = demonstration(5e-6)
    assert found["largest_difference"] == found["differences"]["REST"] == pytest.approx(5e-6)
    assert found["differences"]["gRPC"] == pytest.approx(1e-6)
    assert list(found["differences"]) == ["REST", "gRPC", "hub.load"]
    shown = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in shown[:2]] == [
        "text 0 a (should be a)",
        "text 1 a (should be b)",
    ]
    assert len([line for line in shown if "should be" in line]) == 4
    assert shown[4].startswith("The value of the [MASK] is true.") and shown[4].endswith("one two")
    assert shown[6] == "REST: largest difference from Keras 5.0e-06"


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
