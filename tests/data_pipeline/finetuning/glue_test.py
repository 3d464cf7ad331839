"""Every GLUE task is read from files in its official layout; what is wrong is named by line."""

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.glue import GLUE_TASKS, read_glue

# Columns of the official files. Task -> folder, labeled header (None: no header row), test header.
INDEX_PAIR = ("index", "sentence1", "sentence2")
MNLI = (
    *("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2"),
)
STSB = (
    *("index", "genre", "filename", "year", "old_index", "source1", "source2"),
    *("sentence1", "sentence2"),
)
MRPC = ("#1 ID", "#2 ID", "#1 String", "#2 String")
LAYOUTS = {
    "cola": ("CoLA", None, ("index", "sentence")),
    "sst-2": ("SST-2", ("sentence", "label"), ("index", "sentence")),
    "mrpc": ("MRPC", ("Quality", *MRPC), ("index", *MRPC)),
    "sts-b": ("STS-B", (*STSB, "score"), STSB),
    "qqp": (
        "QQP",
        ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
        ("id", "question1", "question2"),
    ),
    "mnli": ("MNLI", (*MNLI, "label1", "gold_label"), MNLI),
    "qnli": ("QNLI", ("index", "question", "sentence", "label"), ("index", "question", "sentence")),
    "rte": ("RTE", (*INDEX_PAIR, "label"), INDEX_PAIR),
    "wnli": ("WNLI", (*INDEX_PAIR, "label"), INDEX_PAIR),
    "ax": ("diagnostic", None, INDEX_PAIR),
}
COLA = ("source", "label", "mark", "sentence")
TEXT_COLUMNS = ("sentence", "sentence1", "question1", "#1 String", "question")
PAIR_COLUMNS = ("sentence2", "question2", "#2 String")
LABEL_COLUMNS = ("label", "Quality", "score", "is_duplicate", "gold_label")
LABELS = {
    **dict.fromkeys(("cola", "sst-2", "mrpc", "qqp", "wnli"), ("0", "1")),
    **dict.fromkeys(("mnli", "ax"), ("contradiction", "entailment", "neutral")),
    **dict.fromkeys(("qnli", "rte"), ("entailment", "not_entailment")),
    "sts-b": None,
}


def fields_of(task, header, number):
    """The fields of row `number`, from 1: texts are "A1" and "B1", the label the task's last."""
    pair = "sentence" if task == "qnli" else None
    label = "4.250" if LABELS[task] is None else LABELS[task][-1]
    values = []
    for name in header:
        if name == pair or name in PAIR_COLUMNS:
            values.append(f' "B{number}')
        elif name in TEXT_COLUMNS:
            values.append(f'"A{number}\u2028')
        elif name in LABEL_COLUMNS:
            values.append(label)
        else:
            values.append(f"{name}-{number}")
    return values


@pytest.fixture
def write(tmp_path):
    def write(task, split, rows, folder=None, start=""):
        path = tmp_path / (LAYOUTS[task][0] if folder is None else folder)
        path.mkdir(exist_ok=True)
        name = "diagnostic" if task == "ax" else split
        content = start + "".join("\t".join(row) + "\r\n" for row in rows)
        (path / f"{name}.tsv").write_bytes(content.encode("utf-8"))
        return str(tmp_path)

    return write


def test_all_tasks_of_the_benchmark():
    assert set(GLUE_TASKS) == set(LAYOUTS)
    assert {name: task.labels for name, task in GLUE_TASKS.items()} == LABELS


@pytest.mark.parametrize(
    "task, split", [(name, split) for name, task in GLUE_TASKS.items() for split in task.splits]
)
def test_official_layouts(task, split, write):
    _, labeled, test = LAYOUTS[task]
    is_labeled = not split.startswith("test")
    header = (labeled or COLA) if is_labeled else test
    rows = [fields_of(task, header, number) for number in (1, 2)]
    has_header = not (is_labeled and labeled is None)
    root = write(task, split, [header, *rows] if has_header else rows, start="\ufeff")
    found = read_glue(task, root, split)
    assert found.name == split and found.skipped_lines == ()
    for number, example in enumerate(found.examples, start=1):
        assert example.text_a == f'"A{number}\u2028'
        single = task in ("cola", "sst-2")
        assert example.text_b == (None if single else f' "B{number}')
        expected = 4.25 if task == "sts-b" else (LABELS[task] or [None])[-1]
        assert example.label == (expected if is_labeled else None)
        line = number + has_header
        assert example.line == line and example.source.endswith(
            f"{LAYOUTS[task][0]}/{split}.tsv" if task != "ax" else "diagnostic/diagnostic.tsv"
        )
        by_index = header[0] in ("index", "id")
        assert example.guid == (f"{header[0]}-{number}" if by_index else f"{split}-{line - 1}")
    assert len(found) == 2


def test_the_folder_of_the_task_is_found_too(write, tmp_path):
    rows = [("sentence", "label"), ("x", "1")]
    write("sst-2", "dev", rows, folder="mine")
    assert read_glue("sst-2", str(tmp_path / "mine"), "dev").examples[0].text_a == "x"
    with pytest.raises(UserError, match=r"none of the files SST-2/dev.tsv, dev.tsv"):
        read_glue("sst-2", str(tmp_path), "dev")


def test_short_rows(write):
    header = LAYOUTS["qqp"][1]
    full = fields_of("qqp", header, 1)
    root = write("qqp", "train", [header, full[:5], full, full[:1], fields_of("qqp", header, 2)])
    found = read_glue("qqp", root, "train")
    assert found.skipped_lines == (2, 4) and [e.line for e in found.examples] == [3, 5]
    test = LAYOUTS["qqp"][2]
    root = write("qqp", "test", [test, ("7", "a")])
    with pytest.raises(UserError, match=r"QQP/test.tsv:2: expected at least 3 .* found 2"):
        read_glue("qqp", root, "test")
    root = write("rte", "dev", [(*INDEX_PAIR, "label"), ("0", "a", "b", "entailment"), ("1", "a")])
    with pytest.raises(UserError, match=r"RTE/dev.tsv:3: expected at least 4 .* found 2"):
        read_glue("rte", root, "dev")


def test_labels_are_taken_as_they_are(write):
    root = write("rte", "dev", [(*INDEX_PAIR, "label"), ("0", "a", "b", "Entailment")])
    with pytest.raises(UserError, match=r"dev.tsv:2: the label .* is 'Entailment', not one of ent"):
        read_glue("rte", root, "dev")
    header = (*STSB, "score")
    root = write("sts-b", "train", [header, [*fields_of("sts-b", STSB, 1), "high"]])
    with pytest.raises(UserError, match=r"train.tsv:2: expected a number .* found 'high'"):
        read_glue("sts-b", root, "train")


def test_what_is_no_file_of_the_task_is_refused(write):
    root = write("sst-2", "train", [("a film", "1"), ("another", "0")])
    with pytest.raises(UserError, match=r"train.tsv:1: no column 'sentence' \(text\); .*a film"):
        read_glue("sst-2", root, "train")
    with pytest.raises(UserError, match=r"train.tsv holds no example"):
        read_glue("sst-2", write("sst-2", "train", [("sentence", "label")]), "train")
    with pytest.raises(UserError, match=r"train.tsv:1: no column 'sentence'"):
        read_glue("sst-2", write("sst-2", "train", []), "train")
    with pytest.raises(UserError, match=r"CoLA/train.tsv holds no example"):
        read_glue("cola", write("cola", "train", []), "train")
    with pytest.raises(UserError, match=r"no task 'sst2'; choose one of cola, sst-2, mrpc"):
        read_glue("sst2", root, "train")
    with pytest.raises(UserError, match=r"mnli has no split 'dev'; .* train, dev_matched, "):
        read_glue("mnli", root, "dev")
