"""Examples from a tf.data.Dataset, or from any iterable of dicts, instead of files.

TensorFlow Datasets, Hugging Face's `datasets` and pandas (`frame.to_dict("records")`, or
`tf.data.Dataset.from_tensor_slices(dict(frame))`) all come in one of these forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import Split, TextExample

# The value of unknown labels in TensorFlow Datasets and Hugging Face's datasets.
_UNKNOWN = -1
# tf.data.INFINITE_CARDINALITY; TensorFlow is not imported for lists of dicts.
_INFINITE = -1


def read_dataset(
    data: Any,
    split: str,
    *,
    text: str = "text",
    pair: str | None = None,
    label: str | None = "label",
    class_names: Sequence[str] | None = None,
    is_regression: bool = False,
    multi_label: bool = False,
) -> Split[TextExample]:
    """Reads a tf.data.Dataset or an iterable of dicts; each example is a text or a pair of texts.

        {"text": b"fine", "label": 1} -> text_a "fine", label "1", or class_names[1] if given

    Args:
      data: finite and not batched. Elements are dicts of scalars: strings or UTF-8 bytes as texts,
        numbers or strings as labels.
      split: name of the split, such as "train".
      text: name of the column of the (first) text.
      pair: name of the column of the second text, or None.
      label: name of the column of the label, or None if there is none.
      class_names: names of the classes in order, for labels that are numbers from 0; None: an
        integer is used as a name, 1 -> "1". A label of -1 is unknown.
      is_regression: labels are numbers and are kept as such, 1 -> 1.0.
      multi_label: an example has a list of labels, ["a", "b"] or [], instead of one.

    Returns:
      The examples in the order of `data`; an example's guid is its number from 1.

    Raises:
      UserError: `data` has another form, or an element, which is named by its number, is invalid.
    """
    source = f"{split} dataset"

    def read_label(element: Mapping[str, Any], place: str) -> Any:
        if multi_label:
            return _labels(element, str(label), class_names, place)
        value = _scalar(_column(element, str(label), place), str(label), place)
        if value is not None and is_regression:
            return _number(value, str(label), place)
        return _label(value, str(label), class_names, place)

    examples = []
    for number, element in enumerate(_elements(data, source), start=1):
        place = f"{source}:{number}"
        if not isinstance(element, Mapping):
            raise UserError(
                f"{place}: expected a dict of columns; received {type(element).__name__}. Convert "
                "pairs (text, label) with `map`, a pandas frame with "
                'frame.to_dict("records"); with TensorFlow Datasets, leave out as_supervised.'
            )
        examples.append(
            TextExample(
                guid=str(number),
                text_a=_text(element, text, place),
                text_b=_text(element, pair, place) if pair else None,
                label=read_label(element, place) if label else None,
                source=source,
                line=number,
            )
        )
    if not examples:
        raise UserError(f"The {source} is empty.")
    return Split(split, examples)


def _elements(data: Any, source: str) -> Iterator[Any]:
    """The elements of an iterable, or of a tf.data.Dataset as NumPy values."""
    if hasattr(data, "as_numpy_iterator"):
        if data.cardinality() == _INFINITE:
            raise UserError(f"The {source} is infinite. Leave out `repeat`, or `take` some of it.")
        return data.as_numpy_iterator()
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise UserError(
            f"The {source} should be a tf.data.Dataset or an iterable of dicts; received "
            f"{type(data).__name__}. From a dict of splits, take one."
        )
    return iter(data)


def _column(element: Mapping[str, Any], name: str, place: str) -> Any:
    """The value in a column."""
    if name not in element:
        raise UserError(
            f"{place}: no column {name!r}; the columns are {', '.join(map(str, element)):.200}. "
            "Name those to read: text=, pair= and label= of `read_dataset`."
        )
    return element[name]


def _scalar(value: Any, name: str, place: str) -> Any:
    """A value of a column, which should be a scalar, as a Python value."""
    if (isinstance(value, np.ndarray) and value.ndim == 0) or isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (np.ndarray, list, tuple)):
        raise UserError(
            f"{place}: expected one value in the column {name!r}, found {len(value)}. If these "
            "are batches, use `dataset.unbatch()`."
        )
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{place}: the column {name!r} is not UTF-8: {value[:40]!r}.") from None
    return value


def _text(element: Mapping[str, Any], name: str, place: str) -> str:
    value = _scalar(_column(element, name, place), name, place)
    if not isinstance(value, str):
        raise UserError(f"{place}: expected a text in the column {name!r}; found {value!r:.40}.")
    return value


def _labels(
    element: Mapping[str, Any], name: str, class_names: Sequence[str] | None, place: str
) -> tuple[str, ...]:
    """The labels of an example that may have several."""
    values = _column(element, name, place)
    if not isinstance(values, (np.ndarray, list, tuple)) or np.ndim(values) != 1:
        raise UserError(
            f"{place}: expected a list of labels in the column {name!r}; found {values!r:.40}."
        )
    found = [_label(_scalar(each, name, place), name, class_names, place) for each in values]
    return tuple(each for each in found if each is not None)


def _label(value: Any, name: str, class_names: Sequence[str] | None, place: str) -> str | None:
    """The class of an example, see `read_dataset`."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value.strip():
            raise UserError(f"{place}: the label is empty. Fill it in, or remove the example.")
        return value.strip()
    number = _number(value, name, place)
    if not number.is_integer():
        raise UserError(
            f"{place}: expected a class in the column {name!r}; found {value!r}. For "
            "regression, use is_regression=True."
        )
    if number == _UNKNOWN:
        return None
    if class_names is None:
        return str(int(number))
    if not 0 <= number < len(class_names):
        raise UserError(
            f"{place}: the label is {int(number)}, but there are {len(class_names)} class_names, "
            f"counted from 0: {', '.join(class_names)}."
        )
    return class_names[int(number)]


def _number(value: Any, name: str, place: str) -> float:
    """A finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{place}: expected a label in the column {name!r}; found {value!r:.40}.")
    return number
