"""What is prose stays, joined and plain; what is code, a table or a heading goes."""

import textwrap

import pytest

from demo.docstring_prose import docstrings, is_prose, paragraphs, prose_sentences

NUMPYDOC = '''
def function():
    """Return the `sorted` values of an
    array, see :func:`~numpy.sort` [1]_.

    Parameters
    ----------
    values : array_like of shape (n,)
        The values that **will** be sorted. They
        are not changed.
    copy
        Whether a copy is made first.

        .. versionadded:: 1.2
            Some remark about the version here.

    Returns
    -------
    out : ndarray
        A sorted copy of it.

    Notes
    -----
    This holds for every array::

        This is literal text in a block.

    .. math:: x^2 = y

    .. note:: Nobody should rely on
        the order of equal values.

    ======  ===========================
    a       Some words in a row here.
    ======  ===========================

    Examples
    --------
    Here is a good example of it.

    >>> function([2, 1])
    This is the output here.
    """
'''

GOOGLE = '''
class Layer:
    """Takes one keras.Input object, e.g. Dr. Who's, and gives another. See [the long guide](http://x).

    Example:
        This code is not prose at all.

    ```python
    Another line is not prose either.
    ```

    Args:
      name (str): The name of the layer. It is shown
        in the summary.
      inputs: A list of tensors.

    Note: You have to call it first.
    """

    def call(self):
        """
        :param first: The first of all arguments.
        :type first: A kind of number here.
        - One of the items in a list
          that goes on.
        - Another of the items in the list.
        """
'''


def test_numpydoc():
    assert prose_sentences(NUMPYDOC.encode()) == [
        "Return the sorted values of an array, see sort.",
        "The values that will be sorted.",
        "They are not changed.",
        "Whether a copy is made first.",
        "A sorted copy of it.",
        "Nobody should rely on the order of equal values.",
        "Here is a good example of it.",
    ]


def test_google_style_and_fields_and_lists():
    assert prose_sentences(GOOGLE.encode()) == [
        "Takes one keras.Input object, e.g. Dr. Who's, and gives another.",
        "See the long guide.",
        "The name of the layer.",
        "It is shown in the summary.",
        "A list of tensors.",
        "You have to call it first.",
        "The first of all arguments.",
        "One of the items in a list that goes on.",
        "Another of the items in the list.",
    ]


def test_docstrings_come_in_order_from_every_level():
    source = textwrap.dedent(
        '''
        """Module."""
        if True:
            class A:
                """Class."""
                def b(self):
                    """Method."""
                    "not a docstring"
        try:
            async def c():
                """Function."""
                def d():
                    """Inner."""
        except ValueError:
            def e(): "Handler."
        '''
    )
    expected = ["Module.", "Class.", "Method.", "Function.", "Inner.", "Handler."]
    assert list(docstrings(source.encode())) == expected


@pytest.mark.parametrize("source", [b"def f(:", b"\0", b"\xff\xfe", b"# coding: nonsense\n", b""])
def test_what_is_not_python_has_no_docstrings(source):
    assert list(docstrings(source)) == []


@pytest.mark.parametrize(
    "text, expected",
    [
        (":class:`~a.b.C` and ``x`` and `y`_", "C and x and y"),
        ("`a link <http://example.org>`_ and <b>bold</b>", "a link and bold"),
        ("*many* and **very many** and a * b * c", "many and very many and a * b * c"),
    ],
)
def test_markup_is_taken_off(text, expected):
    assert paragraphs(text) == [expected]


@pytest.mark.parametrize(
    "sentence, expected",
    [
        ("This is a whole sentence.", True),
        ("(Is it, though?)", False),  # Three words.
        ('"Is it prose, though?"', True),
        ("It takes max_size of the well-known file.", True),
        ("this begins in the middle.", False),
        ("This does not end", False),
        ("Set x = 3 in the file.", False),
        ("It is at https://example.org for everyone.", False),
        ("Values 1 2 3 4 5 6 7 8.", False),
        ("One (of the brackets is missing.", False),
        ("Word " * 90 + "end.", False),
    ],
)
def test_is_prose(sentence, expected):
    assert is_prose(sentence) is expected
