"""The table of an ensemble."""

from __future__ import annotations

from albert_tf.finetuning.runs.ensemble_report import table_text


def test_table():
    content = {
        "task": "mrpc",
        "key": "f1",
        "average": "votes",
        "choose": "greedy",
        "chosen_on": "dev",
        "members": [
            {"run": "a", "checkpoint": "last", "is_chosen": False, "metrics": {"f1": None}},
            {"run": "a", "checkpoint": "best", "is_chosen": True, "metrics": {"f1": 0.5}},
        ],
        "results": [
            {"split": "dev", "metrics": {"accuracy": 0.25, "f1": 0.75}, "notes": ["All are 1."]}
        ],
    }
    assert table_text(content).splitlines() == [
        "| split | score | ensemble |",
        "| --- | --- | ---: |",
        "| dev | accuracy | 25.0 |",
        "| dev | **f1** | 75.0 |",
        "",
        "| member | f1 on dev by itself | chosen |",
        "| --- | ---: | --- |",
        "| a (best) | 50.0 | yes |",
        "| a (last) | undefined | no |",
        "",
        "- mrpc; average: votes.",
        "- Members were chosen on dev, so that the score on it is too high for new data.",
        "- mrpc, dev: All are 1.",
    ]
    assert table_text({**content, "results": []}).startswith("| member |")
