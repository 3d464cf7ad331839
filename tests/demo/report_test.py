"""The tables and curves of the demonstration, from small files of known content."""

from __future__ import annotations

import json

import pytest

from data_pipeline.records import record_folder
from demo import report


@pytest.fixture
def write(tmp_path):
    """(path below the output folder, text or value) -> writes it, as JSON unless it is text."""

    def write(path: str, content: object) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    return write


METRICS = """step,split,masked_lm_loss,masked_lm_accuracy,accuracy
0,eval,9.75,0.05,
10,train,9.5,0.1,0.3
20,train,nan,0.2,0.4
20,eval,9.25,0.25,0.5
30,train,9.0,0.3,0.6
"""


def test_steps(tmp_path, write, capsys):
    """The seconds of commands that belong together are added."""
    write("corpus/train.txt", f"{'a' * 149_990}\n\nb\n\n \n\nc\n")
    write("corpus/heldout.txt", "a\nb\n")
    for split, number, counts in (("train", 300, [0, 6, 2]), ("heldout", 20, [0, 3, 1])):
        write(f"records/{split}/label_counts.json", {"counts": counts})
        fields = {"num_records": number, "max_seq_length": 64, "vocab_fingerprint": "same"}
        record_folder.write_manifest(str(tmp_path / "records" / split), fields)
    write("pretraining/metrics.csv", METRICS)
    write("saved_models/b/1/saved_model.pb", "x" * 1_400_000)
    write("saved_models/a/1/saved_model.pb", "x" * 1_200_000)
    write("saved_models/note.txt", "")
    write("answers.json", {"largest_difference": 0.00000123})
    names = "corpus records_train records_heldout pretraining finetuning from_scratch"
    names += " export_encoder export_classifier export_masked_lm answers"
    for seconds, name in enumerate(names.split()):
        write(f"finished/{name}", f"some command\n{10**seconds if seconds < 6 else 7}\n")
    report.print_steps(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "step          seconds  result",
        "text                1  0.15 MB, 3 documents, 1 held out",
        "records           110  300 records of 64 tokens, 20 held out",
        "pre-training     1000  held-out words: loss 9.75 to 9.25, accuracy 0.050 to 0.250",
        "fine-tuning    110000  two starts, see below",
        "export             21  a, b: 3 MB",
        "answers             7  REST, gRPC and TF Hub agree with Keras to 1.2e-06",
        "total          111139",
    ]


def test_accuracies(tmp_path, write, capsys):
    """Parts of words tell "blues" from "apples", words as a whole do not."""
    for name, scores in (("classifier", (0.95, 0.8, 0.9)), ("classifier_from_scratch", (0.7,))):
        write(f"{name}/seeds.json", {"runs": [{"best": score} for score in scores]})
    write("train.tsv", "label\ttext\na\tred apple\nb\tblue sky\nc\tgreen tree\n")
    dev = "a\tapple\nb\tblues\na\tred\nc\tgreen grass\na\tapple tree apple\n"
    write("dev.tsv", f"label\ttext\n{dev}")
    found = report.accuracies(tmp_path, tmp_path)
    assert found["from the weights"] == "0.900 (median of 3 seeds, 0.800 to 0.950)"
    assert found["from scratch"] == "0.700 (median of 1 seeds, 0.700 to 0.700)"
    assert (found["character 2-5-grams"], found["chance"]) == ("1.000", "0.600")
    assert float(found["words"]) < 1
    report.print_accuracies(found)
    assert "  from scratch         0.700 (med" in capsys.readouterr().out
