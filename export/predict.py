"""Asks an exported model about texts: in this process, over HTTP, or over gRPC.

python -m export.predict --model=/exports/topics --text="Reads a file."
python -m export.predict --model=http://127.0.0.1:8501/v1/models/topics --text="Reads a file."
python -m export.predict --model=grpc://127.0.0.1:8500/topics --text="Reads a file."
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import json
from collections.abc import Mapping
from typing import Any

from data_pipeline.errors import UserError
from export.client import predict_texts

FLAGS = flags.FLAGS


def format_row(text: str, row: Mapping[str, Any]) -> str:
    """The answer to one text, for people: the label, the pieces for each mask, or raw values."""
    if "label" in row:
        return f"{row['probabilities'][row['label_id']]:7.4f}  {row['label']:<20}  {text}"
    if "value" in row:
        return f"{row['value']:10.4f}  {text}"
    if "top_pieces" in row:
        lines = [text]
        for mask in range(row["num_masks"]):
            best = zip(row["top_pieces"][mask], row["top_probabilities"][mask])
            lines.append(
                f"  mask {mask + 1}: " + "  ".join(f"{piece} {share:.3f}" for piece, share in best)
            )
        return "\n".join(lines)
    return f"{text}\n  {json.dumps(row)}"


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Question")
    flags.DEFINE_string(
        "model",
        None,
        "A SavedModel's folder (or the folder of its versions), http://HOST:PORT/v1/models/NAME, "
        "or grpc://HOST:PORT/NAME.",
    )
    flags.DEFINE_multi_string("text", [], "A text to ask about; may be repeated.")
    flags.DEFINE_multi_string(
        "text_pair", [], "The second text for each --text; needs a signature text_pair."
    )
    flags.DEFINE_enum(
        "format", "table", ["table", "json"], "How to print: for people, or one JSON object a row."
    )


def main() -> None:
    """Prints the answer to each text."""
    if not FLAGS.model or not FLAGS.text:
        raise UserError("Pass --model and at least one --text.")
    rows = predict_texts(FLAGS.model, FLAGS.text, FLAGS.text_pair)
    for text, row in zip(FLAGS.text, rows):
        if FLAGS.format == "json":
            print(json.dumps({"text": text, **row}, ensure_ascii=False))
        else:
            print(format_row(text, row))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
