"""Every request of docs/serving.md, sent as it stands to the server's application."""

import json
import re
from pathlib import Path

import pytest

from export.server.rest import create_app

DOCUMENT = Path(__file__).parents[2] / "docs" / "serving.md"
OF_SQUAD_2 = {"null_score", "threshold"}  # They are told of below the answer.
# Heading of a section -> the task whose model is asked, unless the line names a method.
SECTIONS = {"classifier, regression": "classifier", ":regress": "regression"}


def documented():
    """(task, method, body, row of the answer as it stands in the document) of each request."""
    found = []
    for section in DOCUMENT.read_text(encoding="utf-8").split("\n### ")[1:]:
        heading = section.partition("\n")[0]
        for method, body, row in re.findall(
            r"^POST (:\w+)? *(\{.*\})\n((?: {5}.*\n)+)", section, re.M
        ):
            task = SECTIONS.get(method) or SECTIONS.get(heading, heading)
            found.append((task, method or ":predict", body, row))
    return found


@pytest.fixture(scope="module")
def client(every_store):
    return create_app(every_store).test_client()


def test_every_line_with_a_request_is_found():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert len(documented()) == len(re.findall(r"^POST ", text, re.M)) >= 11
    assert len({task for task, *_ in documented()}) == 8


@pytest.mark.parametrize("request_number", range(len(documented())))
def test_a_request_is_answered_as_documented(client, request_number):
    task, method, body, row = documented()[request_number]
    answer = client.post(f"/v1/models/{task}{method}", data=body)
    assert answer.status_code == 200, answer.json
    [got] = answer.json["predictions" if method == ":predict" else "results"]
    names = re.findall(r'"(\w+)": ', row)
    if names:  # "..." stands for more of the same.
        assert sorted(set(got) - OF_SQUAD_2) == sorted(names)
        return
    documented_row = json.loads(row)
    assert type(got) is type(documented_row)
    if isinstance(got, list):
        assert [[type(label), type(score)] for label, score in got] == [[str, float]] * 3
