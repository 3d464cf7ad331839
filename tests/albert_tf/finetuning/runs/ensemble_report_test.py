"""The table of an ensemble."""

import dataclasses

from albert_tf.finetuning.runs.ensemble_report import MemberScore, Report, SplitScore, table_text


def test_table():
    members = [
        MemberScore("a", "last", "", False, {"f1": None}),
        MemberScore("a", "best", "", True, {"f1": 0.5}),
    ]
    results = [SplitScore("dev", 8, "", {"accuracy": 0.25, "f1": 0.75}, ["All are 1."])]
    report = Report("mrpc", "f1", "votes", "greedy", "dev", members, results)
    assert table_text(report).splitlines() == [
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
        "- Members were chosen on dev, so the score on it is too optimistic for new data.",
        "- mrpc, dev: All are 1.",
    ]
    assert table_text(dataclasses.replace(report, results=[])).startswith("| member |")
    unknown = [dataclasses.replace(member, metrics=None) for member in members]
    others = {"results": [], "chosen_on": None, "choose": "all"}
    unscored = dataclasses.replace(report, members=unknown, **others)
    assert table_text(unscored).splitlines()[:3] == [
        "| member | chosen |",
        "| --- | --- |",
        "| a (best) | yes |",
    ]
