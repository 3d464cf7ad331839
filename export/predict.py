"""Queries an exported model: in this process, over HTTP, or over gRPC.

python -m export.predict --model=/exports/topics --text="Reads a file."
python -m export.predict --model=http://127.0.0.1:8501/v1/models/topics --text="Reads a file."
python -m export.predict --model=grpc://127.0.0.1:8500/squad --question="Who?" --context="Ann did."
python -m export.predict --model=/exports/topics --input_file=texts.txt --output_file=answers.jsonl
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, storage
from data_pipeline.finetuning.text_files import parse_json
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from export.client import predict_rows
from export.signatures import DEFAULT_SIGNATURE

FLAGS = flags.FLAGS

Row = dict[str, Any]
_SHOWN = 4  # How many numbers of a long vector are printed.


def format_row(asked: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """The answer to one row as human-readable text: the answer, then the input."""
    texts = [value for value in asked.values() if isinstance(value, str)]
    text = " | ".join(texts) or json.dumps(_short(asked))
    if "label" in row:
        return f"{row['probabilities'][row['label_id']]:7.4f}  {row['label']:<20}  {text}"
    if "num_labels" in row:
        return _format_labels(text, row)
    if "option" in row:
        return f"{row['probabilities'][row['choice']]:7.4f}  {row['option']:<20}  {text}"
    for name in ("value", "similarity"):
        if isinstance(row.get(name), float):
            return f"{row[name]:10.4f}  {text}"
    if "answers" in row:
        return _format_answer(text, row)
    if "top_pieces" in row:
        return _format_masks(text, row)
    for name in ("words", "pieces"):
        if name in row:
            return _format_spans(text, row, name)
    return f"{text}\n  {json.dumps(_short(row))}"


def _short(value: Any) -> Any:
    """A value with long vectors abbreviated: [1, 2, 3, 4, 5, 6] -> [1, 2, 3, 4, "... 6"]."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    shown = [_short(each) for each in value[:_SHOWN]]
    return shown if len(value) <= _SHOWN else [*shown, f"... {len(value)}"]


def _format_labels(text: str, row: Mapping[str, Any]) -> str:
    labels, probabilities = row["labels"], row["probabilities"]
    # Labels and probabilities are both in class order.
    least = min(sorted(probabilities, reverse=True)[: len(labels)], default=1.0)
    shares = [share for share in probabilities if share >= least]
    shown = ", ".join(f"{label} {share:.4f}" for label, share in zip(labels, shares))
    return f"{shown or '(no label)':<30}  {text}"


def _format_answer(text: str, row: Mapping[str, Any]) -> str:
    answer = row["answer"] or "(no answer)"
    lines = [f"{row['score']:7.4f}  {answer}  [{row['start']}, {row['end']})  {text}"]
    for number in range(1, row["num_answers"]):
        lines.append(f"{row['probabilities'][number]:9.4f}  {row['answers'][number]}")
    return "\n".join(lines)


def _format_masks(text: str, row: Mapping[str, Any]) -> str:
    lines = [text]
    for mask in range(row["num_masks"]):
        words = (piece.removeprefix(WORD_MARK) for piece in row["top_pieces"][mask])
        best = zip(words, row["top_probabilities"][mask])
        lines.append(
            f"  mask {mask + 1}: " + "  ".join(f"{word} {share:.3f}" for word, share in best)
        )
    return "\n".join(lines)


def _format_spans(text: str, row: Mapping[str, Any], name: str) -> str:
    """One line per word or piece: its probability, its label if it has one, and its text."""
    lines = [text]
    for number in range(row[f"num_{name}"]):
        label = f"{row['labels'][number]:<10}  " if "labels" in row else ""
        lines.append(f"  {row['probabilities'][number]:.4f}  {label}{row[name][number]}")
    return "\n".join(lines)


def read_rows(path: str) -> list[Row]:
    """The rows of a file: each line is a JSON object of inputs (.jsonl) or a text. Raises UserError
    if it cannot be read, is empty, or a line is not a JSON object.
    """
    if not storage.exists(path):
        raise UserError(f"The file {path} of --input_file does not exist.")
    try:
        # Windows editors start files with a byte order mark, which is not part of the text.
        text = storage.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8; convert the file.") from None
    # Not splitlines(), which also splits at other characters that Unicode calls line ends.
    lines = [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
    if not path.endswith(".jsonl"):
        rows: list[Row] = [{"text": line} for line in lines]
    else:
        rows = [_object(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise UserError(f"{path} holds no line. Give one text, or one JSON object, per line.")
    return rows


def _object(path: str, number: int, line: str) -> Row:
    try:
        row = parse_json(line, path)
    except (ValueError, RecursionError) as error:  # Also for very long numbers, deep nesting.
        reason = getattr(error, "msg", str(error))
        raise UserError(f"{path}:{number}: expected a JSON object; {reason}.") from None
    if not isinstance(row, dict) or not row:
        raise UserError(f'{path}:{number}: expected a JSON object as {{"text": "..."}}.')
    return row


def rows_of_flags() -> list[Row]:
    """The rows that the flags describe; raises UserError if flags contradict each other."""
    sources = ("text", "question", "input_file")
    if len(given := [name for name in sources if FLAGS[name].value]) > 1:
        raise UserError(f"--{given[0]} and --{given[1]} are both given. Give one.")
    for name, owner in (("text_pair", "text"), ("context", "question"), ("option", "question")):
        if FLAGS[name].value and not FLAGS[owner].value:
            raise UserError(f"--{name} needs --{owner}, which is missing.")
    if FLAGS.input_file:
        return read_rows(FLAGS.input_file)
    texts, pairs = FLAGS.text, FLAGS.text_pair
    if FLAGS.question:
        if len(FLAGS.question) != len(FLAGS.context):
            raise UserError(
                f"{len(FLAGS.question)} --question and {len(FLAGS.context)} --context: give one "
                "context for each question."
            )
        rows = [{"question": q, "context": c} for q, c in zip(FLAGS.question, FLAGS.context)]
        return [{**row, "options": FLAGS.option} for row in rows] if FLAGS.option else rows
    if pairs and len(pairs) != len(texts):
        raise UserError(
            f"{len(pairs)} --text_pair for {len(texts)} --text: give one for each, or none."
        )
    if pairs:
        return [{"text_a": text, "text_b": pair} for text, pair in zip(texts, pairs)]
    return [{"text": text} for text in texts]


def answers(
    model: str, rows: Sequence[Row], signature: str, batch_size: int, show_progress: bool
) -> Iterator[tuple[Row, Row]]:
    """Each row with its answer, in order; sends `batch_size` rows per request. A UserError names
    refused rows. `model` is as for `predict_rows`.
    """
    with tqdm(total=len(rows), unit=" rows", disable=not show_progress) as progress:
        for first in range(0, len(rows), batch_size):
            batch = rows[first : first + batch_size]
            try:
                found = predict_rows(model, batch, signature)
            except UserError as error:
                raise UserError(_with_rows(str(error), first, len(batch), len(rows))) from None
            yield from zip(batch, found)
            progress.update(len(batch))


def _with_rows(message: str, first: int, count: int, total: int) -> str:
    """A message with the rows of the request appended: "... (rows 3 to 4 of 9)."."""
    if total == 1:
        return message
    rows = f"row {first + 1}" if count == 1 else f"rows {first + 1} to {first + count}"
    return f"{message.removesuffix('.')} ({rows} of {total})."


def write_answers(path: str, found: Iterator[tuple[Row, Row]]) -> int:
    """Writes a JSON object of inputs and answers for each row, and returns the number of rows.
    After a UserError for refused rows, the file holds the answers to the rows before them, if any.
    """
    first = next(found, None)  # If the first rows are refused, nothing is written.
    if first is None:
        raise UserError(f"There are no rows to answer; {path} is not written.")
    count, refusal = 0, ""
    with atomic_files.writing(path) as file:
        try:
            for asked, row in itertools.chain([first], found):
                line = json.dumps({**asked, **row}, ensure_ascii=False)
                file.write(f"{line}\n".encode())
                count += 1
        except UserError as error:
            refusal = str(error)
    if refusal:
        raise UserError(f"{refusal} {path} has the answers to the preceding rows.")
    return count


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Question")
    flags.DEFINE_string(
        "model",
        None,
        "A SavedModel's folder (or the folder of its versions), http://HOST:PORT/v1/models/NAME, "
        "or grpc://HOST:PORT/NAME.",
        is_address=True,
    )
    flags.DEFINE_multi_string("text", [], "Text to ask about; may be repeated.")
    flags.DEFINE_multi_string(
        "text_pair", [], "Second text for each --text; needs a signature text_pair."
    )
    flags.DEFINE_multi_string("question", [], "Question to ask; may be repeated.")
    flags.DEFINE_multi_string("context", [], "Context of each --question.")
    flags.DEFINE_multi_string(
        "option", [], "Option of every --question, for multiple choice; may be repeated."
    )
    flags.DEFINE_string(
        "input_file",
        None,
        "File of rows to ask: one text per line, or (.jsonl) one object of inputs per line.",
    )
    flags.DEFINE_string(
        "output_file", None, "File to write one JSON object per row to, instead of the screen."
    )
    flags.DEFINE_string("signature", None, "Signature to call; by default the one for the inputs.")
    flags.DEFINE_integer("batch_size", 32, "Number of rows in a request.", lower_bound=1)
    flags.DEFINE_bool("json", False, "Print one JSON object per row.")


def main() -> None:
    """Prints the answer to each row, or writes them to a file."""
    rows = rows_of_flags()
    if not FLAGS.model or not rows:
        raise UserError(
            "Pass --model and at least one --text, --question with --context, or --input_file."
        )
    of_input = {"text_b": "text_pair", "input_word_ids": "tokens"}
    default = next((of_input[name] for name in rows[0] if name in of_input), DEFAULT_SIGNATURE)
    signature, to_file = FLAGS.signature or default, bool(FLAGS.output_file)
    found = answers(FLAGS.model, rows, signature, FLAGS.batch_size, to_file)
    if to_file:
        print(f"{write_answers(FLAGS.output_file, found)} answers: {FLAGS.output_file}")
        return
    for asked, row in found:
        if FLAGS.json:
            print(json.dumps({**asked, **row}, ensure_ascii=False))
        else:
            print(format_row(asked, row))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
