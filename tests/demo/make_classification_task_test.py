"""From packages to files that run_finetuning reads."""

import json

from data_pipeline.finetuning.tsv import read_tsv
from demo import corpus
from demo.collect_docstrings import docstring_documents


def test_files_are_read_by_the_classifier(tmp_path, site_packages, run):
    documents = corpus.hold_out(docstring_documents([("", site_packages)]), 0.1)
    corpus.write(documents, str(tmp_path / "corpus"), {"corpus": None})
    result = run(
        "make_classification_task", f"--corpus_dir={tmp_path}/corpus",
        f"--output_dir={tmp_path}/task", "--num_classes=2", "--eval_per_class=14",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "The label is the sentence's package: alpha, beta." in result.stdout
    assert "Majority baseline: accuracy 0.500." in result.stdout
    manifest = json.loads((tmp_path / "task" / "manifest.json").read_text())
    for split, count in manifest["rows"].items():
        examples = read_tsv(str(tmp_path / "task" / f"{split}.tsv")).examples
        labels = [example.label for example in examples]
        assert len(labels) == count
        assert labels.count("alpha") == labels.count("beta") == count // 2
    assert manifest["rows"]["dev"] == 28
