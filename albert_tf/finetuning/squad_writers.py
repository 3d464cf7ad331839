"""The files of answers to SQuAD's questions, as the official scripts read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from albert_tf.finetuning.squad_answers import ScoredAnswer
from data_pipeline.files import atomic_files


def write_answers(
    path: str,
    texts: Mapping[str, str],
    answers: Mapping[str, Sequence[ScoredAnswer]],
    odds: Mapping[str, float] | None = None,
) -> list[str]:
    """Writes the answers to questions as JSON objects with an entry for each question's id.

        PATH_predictions.json        {"q1": "in Paris", "q2": ""}
        PATH_nbest_predictions.json  {"q1": [{"text": "in Paris", "probability": 0.9,
                                      "start_log_prob": 4.5, "end_log_prob": 5.0}, ...], ...}
        PATH_null_odds.json          {"q1": -3.2, "q2": 1.5}

    Version 2.0's official script takes the first and the last of them.

    Args:
      path: of the files, without their endings.
      texts: the answer to each question, "" for no answer.
      answers: the best answers to each, best first, as if each could be answered.
      odds: null odds of each; None: version 1.1, which has none.

    Returns:
      Paths of the files.
    """
    contents = {
        "predictions": dict(texts),
        "nbest_predictions": {
            name: [answer._asdict() for answer in best] for name, best in answers.items()
        },
    }
    if odds is not None:
        contents["null_odds"] = dict(odds)
    paths = []
    for name, content in contents.items():
        paths.append(f"{path}_{name}.json")
        atomic_files.write_json(paths[-1], content)
    return paths
