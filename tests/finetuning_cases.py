"""Made-up examples for every form of fine-tuning task."""

from __future__ import annotations

from albert_tf.finetuning.tasks.base import Task
from albert_tf.finetuning.tasks.squad import SQUAD_TASKS, SquadSettings
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from albert_tf.finetuning.tasks.texts import MultiLabelTask
from data_pipeline.finetuning.examples import ChoiceExample, Split, TextExample
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import Answer, Question, SquadExamples, SquadSplit
from data_pipeline.finetuning.tagging import TaggedExample

# Some texts are longer, and contexts of SQuAD have several windows.
LENGTHS = LengthSettings(max_seq_length=32, doc_stride=8, max_query_length=8)
FORMS = {
    **{name: TASKS[name] for name in ("cola", "mrpc", "sts-b", "tsv", "copa", "tagging")},
    **{name: TASKS[name] for name in ("squad1.1", "squad2.0")},
    "several labels": own_classes(Classes(multi_label=True)),
    "whole answers": SQUAD_TASKS["squad1.1"](settings=SquadSettings(only_windows_with_answer=True)),
}


def split_of(task: Task, words: list[str], num_examples: int) -> Split:
    """Examples of 1 to 15 of these words, to be trained on, in the form of the task."""
    texts = [words[number % 20 :][: 1 + number * 7 % 15] for number in range(num_examples)]
    if task.name.startswith("squad"):
        return _questions(texts, has_null=task.name == "squad2.0")
    return Split("train", [_example(task, number, text) for number, text in enumerate(texts)])


def _example(
    task: Task, number: int, text: list[str]
) -> TextExample | ChoiceExample | TaggedExample:
    guid, where = str(number), {"source": "made up", "line": number + 1}
    if task.name == "tagging":
        tags = tuple(f"B-{word[0]}" if len(word) > 4 else "O" for word in text)
        return TaggedExample(guid, tuple(text), tags, **where)
    if task.name == "copa":
        options = (" ".join(text[:3]), " ".join(text[-2:]))
        return ChoiceExample(guid, " ".join(text), "why?", options, number % 2, "", **where)
    label = number / 7 if task.name == "sts-b" else str(number % 2)
    if isinstance(task, MultiLabelTask):
        label = tuple(name for place, name in enumerate("ab") if number >> place & 1)
    pair = " ".join(text[::-1][:5]) if task.name == "mrpc" else None
    return TextExample(guid, " ".join(text), pair, label, **where)


def _questions(texts: list[list[str]], has_null: bool) -> SquadSplit:
    contexts, questions = [], []
    for number, text in enumerate(texts):
        context = " ".join(text * 3)
        is_impossible = has_null and number % 3 == 0
        answers = () if is_impossible else (Answer(text[-1], context.index(text[-1])),)
        contexts.append(context)
        questions.append(Question(f"q{number}", "what was it?", number, answers, is_impossible))
    content = SquadExamples("made up", contexts, questions)
    return SquadSplit("train", questions, content=content)
