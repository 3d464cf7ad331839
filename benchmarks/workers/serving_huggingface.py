"""Hugging Face's pipelines. Argument: torch, or onnx for ONNX Runtime through Optimum."""

import sys

import protocol
from load import Batches, Load
from transformers import AlbertTokenizerFast, pipeline

if sys.argv[1] == "onnx":
    from optimum.onnxruntime import ORTModelForQuestionAnswering as QuestionAnswering
    from optimum.onnxruntime import ORTModelForSequenceClassification as Classification

    OPTIONS = {"export": True, "provider": "CPUExecutionProvider"}
else:
    from transformers import AlbertForQuestionAnswering as QuestionAnswering
    from transformers import AlbertForSequenceClassification as Classification

    OPTIONS = {}


def build(case):
    """A pipeline with the model of the case's task; with `batching`, behind a queue."""
    name, kind, ask = {
        "classifier": ("text-classification", Classification, _labels),
        "question_answering": ("question-answering", QuestionAnswering, _answers),
    }[case["task"]]
    folder = case["huggingface"]
    model = kind.from_pretrained(folder, **OPTIONS)
    tokenizer = AlbertTokenizerFast.from_pretrained(folder)
    run = pipeline(name, model=model, tokenizer=tokenizer, device=-1)

    def answers(rows):
        return ask(run, rows, case)

    return Load(case, Batches(answers, **case["batching"]) if case["batching"] else answers)


def _labels(run, rows, case):
    found = run(rows, batch_size=len(rows), truncation=True, max_length=case["max_seq_length"])
    return [each["label"] for each in found]


def _answers(run, rows, case):
    found = run(
        question=[row["question"] for row in rows],
        context=[row["context"] for row in rows],
        batch_size=len(rows),
        max_seq_len=case["max_seq_length"],
        doc_stride=case["doc_stride"],  # Means the overlap there, so there are fewer windows.
        max_answer_len=30,
    )
    return [each["answer"] for each in (found if isinstance(found, list) else [found])]


protocol.serve(build)
