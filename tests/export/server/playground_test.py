"""The playground, as people see it: in a headless browser where there is one."""

import contextlib
import json
import shutil
import subprocess
import warnings

import pytest

from export.client import predict_rows
from export.server.listeners import RestServer
from export.server.playground import add_playground, pieces_of
from export.server.rest import create_app
from tests.export.server.browser import CHROMIUM, DRIVER, open_browser

CONTROL, ENTER, RIGHT = "\ue009", "\ue007", "\ue014"
ANSWERED = "return !document.querySelector('#answer').hidden"


@contextlib.contextmanager
def playground(store):
    """The address of the page for the models of a store."""
    server = RestServer(app_with_playground(store), "127.0.0.1", 0, store.limits)
    server.start()
    yield f"http://127.0.0.1:{server.port}/playground"
    server.stop()


def app_with_playground(store):
    app = create_app(store)
    add_playground(app, store)
    return app


@pytest.fixture(scope="module")
def address(store):
    with playground(store) as found:
        yield found


@pytest.fixture(scope="module")
def tasks_address(every_store):
    """That of a page for a model of each task, under the task's name."""
    with playground(every_store) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    if not (CHROMIUM and DRIVER):
        message = (
            "NO BROWSER: the playground is not tested. apt-get install chromium chromium-driver"
        )
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def client(store):
    return app_with_playground(store).test_client()


def test_it_is_there_only_when_asked_for(store, client):
    assert create_app(store).test_client().get("/playground").status_code == 404
    page = client.get("/playground")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    for file, kind in (("style.css", "text/css"), ("app.js", "javascript")):
        assert kind in client.get(f"/playground/{file}").mimetype
    assert client.get("/playground/__init__.py").status_code == 404


def test_models_and_pieces(client, store, vocabulary):
    (words,) = (m for m in client.get("/playground/models").json if m["name"] == "words")
    assert words["version"] == 1 and words["signatures"]["serving_default"]["inputs"] == ["text"]
    answer = client.post("/playground/pieces", json={"model": "topics", "text": "The cat"})
    assert answer.json == pieces_of(store.get("topics"), "The cat")
    assert [row["id"] for row in answer.json] == list(vocabulary.encode("The cat"))
    assert [row["piece"] for row in answer.json] == [
        vocabulary.pieces[row["id"]] for row in answer.json
    ]
    for body in (
        {"model": "topics"},
        {"model": 1, "text": "a"},
        {"model": "topics", "text": "a" * (2 << 20)},
    ):
        assert client.post("/playground/pieces", json=body).status_code == 400


class Loaded:
    """A servable, in as far as pieces need it."""

    def __init__(self, path, signature_defs):
        self.path, self.signature_defs = path, signature_defs


def test_pieces_are_those_of_the_vocabulary_that_is_loaded(store, tmp_path):
    """Not of an earlier version in the same folder."""
    served = store.get("topics")
    earlier = Loaded(str(tmp_path), served.signature_defs)
    assert pieces_of(earlier, "The cat") == []  # There is no vocabulary.
    (tmp_path / "assets").symlink_to(f"{served.path}/assets")
    assert pieces_of(earlier, "The cat") == []
    later = Loaded(str(tmp_path), served.signature_defs)
    assert pieces_of(later, "The cat") == pieces_of(served, "The cat") != []


def test_a_mask_is_one_piece_where_the_model_reads_masks(store, vocabulary):
    ids = {
        name: [row["id"] for row in pieces_of(store.get(name), "[MASK]")] for name in store.names()
    }
    assert ids["words"] == [vocabulary.mask_id] and vocabulary.mask_id not in ids["topics"]


def texts_of(browser, selector, what="textContent"):
    """A property of all elements of a selector."""
    script = f"return [...document.querySelectorAll(arguments[0])].map((each) => each.{what})"
    return browser.run(script, selector)


def check_shares(browser, selector, expected, what="textContent"):
    """In percent, with one decimal."""
    shares = [float(share.split()[0]) for share in texts_of(browser, selector, what)]
    assert shares == pytest.approx([100 * value for value in expected], abs=0.06)


# Task -> texts by the names of the fields.
VIEWS = {
    "question_answering": {
        "question": "who",
        "context": "The café of paris <b>is</b> 🤖 well-known",
    },
    "tagging": {"text": "The cat <i>looked</i> at 🤖 the café in paris and then at every dog"},
    "embedding": {"text_a": "the cat runs", "text_b": "every dog looked at the river"},
    "regression": {"text": "the cat runs", "text_b": "every dog looked"},
    "multiple_choice": {"question": "who", "options": "the cat\nparis\na dog", "context": "a"},
    "replaced_tokens": {"text": "The café of 🤖 paris"},
}


def ask(browser, address, task, texts):
    """Fills the fields in, and asks."""
    browser.open(f"{address}#{task}")
    for name, text in texts.items():
        browser.wait(f"return document.querySelector('#field-{name}')")
        fill = "document.querySelector(arguments[0]).value = arguments[1]"
        browser.run(fill, f"#field-{name}", text)
    browser.run("document.querySelector('#ask').click()")


def show(browser, address, task, texts=None):
    """Asks (by default as in VIEWS), and waits for the answer."""
    ask(browser, address, task, texts or VIEWS[task])
    browser.wait(ANSWERED)
    browser.wait("return document.querySelectorAll('.piece').length > 0")
    assert texts_of(browser, "#error", "hidden") == [True]


def test_masked_words_have_bars_pieces_and_a_curl_line(browser, address):
    browser.open(f"{address}#words")
    browser.wait("return document.querySelector('textarea')")
    browser.run("document.querySelector('textarea').value = ''")
    browser.type("textarea", "the [MASK] of <b>paris</b>")
    browser.press(CONTROL, ENTER)
    browser.wait(ANSWERED)
    assert len(texts_of(browser, "#answer .bar")) == 5
    assert "Mask 1" in browser.text("#answer") and "%" in browser.text("#answer")
    browser.wait("return document.querySelectorAll('.piece').length > 3")
    assert browser.text("#latency").endswith(" ms")
    [curl] = texts_of(browser, "#curl")
    assert curl.startswith("curl -d '{") and curl.endswith("/v1/models/words:predict")


CURL = shutil.which("curl")


@pytest.mark.skipif(not CURL, reason="NO CURL: the page's line is not run. apt-get install curl")
def test_the_curl_line_gives_the_answer_of_the_page(browser, tasks_address, exports):
    """Pasted into a shell, with quotes and signs that a shell would read otherwise."""
    asked = {"question": "who's it", "context": 'The dog\'s "café" of $HOME `runs` \\n 🤖 & so on'}
    show(browser, tasks_address, "question_answering", asked)
    [line] = texts_of(browser, "#curl")
    answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    [row] = predict_rows(exports.base("question_answering"), [asked])
    [served] = json.loads(answer)["predictions"]
    assert served["answers"] == row["answers"] and served["starts"] == row["starts"]


def test_classes_by_keyboard_alone(browser, address):
    """Arrow keys choose the model, Ctrl-Enter asks."""
    browser.open(f"{address}#topics")
    browser.wait("return document.querySelector('#field-text_b')")
    browser.run("document.querySelector('#models [aria-checked=true]').focus()")
    browser.press(RIGHT)
    browser.wait(
        "return document.querySelector('#models [aria-checked=true]').innerText == 'words'"
    )
    browser.press(RIGHT)
    browser.wait("return document.querySelector('#field-text_b')")
    browser.type("#field-text", "the cat" + CONTROL + ENTER)
    browser.wait(ANSWERED)
    assert {"red", "green", "blå"} <= set(browser.text("#answer").split("\n"))


def test_the_answer_is_marked_in_its_text(browser, tasks_address, exports):
    asked = VIEWS["question_answering"]
    [row] = predict_rows(exports.base("question_answering"), [asked])
    show(browser, tasks_address, "question_answering")
    if row["answer"]:
        assert texts_of(browser, "#answer mark") == [row["answer"]]
        assert texts_of(browser, "#answer p") == [asked["context"]]
    else:
        assert browser.text("#answer p") == "The text does not say."
    shown = texts_of(browser, "#answer .bar b")
    assert shown == row["answers"][: row["num_answers"]]
    check_shares(browser, "#answer .bar span", row["probabilities"][: len(shown)])


def test_words_have_their_tags(browser, tasks_address, exports):
    asked = VIEWS["tagging"]
    [row] = predict_rows(exports.base("tagging"), [asked])
    tagged = [pair for pair in zip(row["words"], row["labels"]) if pair[1] != "O"]
    show(browser, tasks_address, "tagging")
    words = texts_of(browser, "#answer .tag", "firstChild.textContent")
    labels = texts_of(browser, "#answer .tag small")
    assert tagged and list(zip(words, labels)) == tagged
    [text] = texts_of(browser, "#answer p")
    assert len(text) == len(asked["text"]) + sum(map(len, labels))

    words = asked["text"].split()
    rows = predict_rows(exports.base("tagging"), [{"text": word} for word in words])
    untagged = next(word for word, row in zip(words, rows) if row["labels"][0] == "O")
    show(browser, tasks_address, "tagging", {"text": untagged})
    nothing = "Nothing found: no word has a tag other than O."
    assert texts_of(browser, "#answer p") == [untagged, nothing]


@pytest.mark.parametrize(
    ("task", "signature", "output"),
    [("embedding", "similarity", "similarity"), ("regression", "text_pair", "value")],
)
def test_numbers_are_large(browser, tasks_address, exports, task, signature, output):
    first, second = VIEWS[task].values()
    [row] = predict_rows(exports.base(task), [{"text_a": first, "text_b": second}], signature)
    show(browser, tasks_address, task)
    [shown] = texts_of(browser, "#answer .big")
    assert float(shown) == pytest.approx(row[output], abs=6e-4) and len(shown.split(".")[1]) == 3


def test_options_are_ranked(browser, tasks_address, exports):
    asked = VIEWS["multiple_choice"]
    options = asked["options"].split("\n")
    [row] = predict_rows(exports.base("multiple_choice"), [{**asked, "options": options}])
    ranked = sorted(zip(row["probabilities"], options), reverse=True)
    show(browser, tasks_address, "multiple_choice")
    assert texts_of(browser, "#answer .bar b") == [option for _, option in ranked]
    check_shares(browser, "#answer .bar span", [value for value, _ in ranked])


def test_an_answer_stands_where_the_fields_are_too_long_to_be_shown_in_pieces(
    browser, tasks_address
):
    """Each text is within the limit, and both together are beyond it."""
    ask(browser, tasks_address, "embedding", dict.fromkeys(("text_a", "text_b"), "cat " * 17_000))
    browser.wait(ANSWERED)
    assert texts_of(browser, "#error, #pieces", "hidden") == [True, True]


def test_an_answer_that_comes_when_another_model_is_chosen_is_not_shown(browser, tasks_address):
    browser.open(f"{tasks_address}#regression")
    browser.wait("return document.querySelector('#field-text')")
    browser.run(
        "document.querySelector('#ask').click();"
        "document.querySelector('#models [aria-checked=false]').click()"
    )
    browser.run("return fetch('/healthz').then(() => 0)")
    browser.run("return new Promise((done) => setTimeout(done, 500))")
    assert texts_of(browser, "#answer, #error, #command", "hidden") == [True] * 3


def test_the_line_is_selected_where_it_cannot_be_copied(browser, tasks_address):
    show(browser, tasks_address, "regression")
    browser.run("document.querySelector('#command').open = true")
    browser.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.run("document.querySelector('#copy').click()")
    browser.wait("return document.querySelector('#copy').textContent == 'Selected: copy it'")
    assert [browser.run("return getSelection().toString()")] == texts_of(browser, "#curl")


def test_pieces_out_of_place_stand_in_their_text(browser, tasks_address, exports):
    asked = VIEWS["replaced_tokens"]
    [row] = predict_rows(exports.base("replaced_tokens"), [asked])
    show(browser, tasks_address, "replaced_tokens")
    pieces = [asked["text"][a:b] for a, b in zip(row["starts"], row["ends"])]
    assert texts_of(browser, "#answer mark") == pieces
    check_shares(browser, "#answer mark", row["probabilities"], "title")
    assert browser.text("#answer") == asked["text"]
    long = " ".join(["The cat"] * 60)  # More pieces than the model reads.
    show(browser, tasks_address, "replaced_tokens", {"text": long})
    assert browser.text("#answer") == long


@pytest.fixture(scope="module")
def phone(browser):
    """A browser as wide as a phone, where there is a browser."""
    with open_browser(phone=True) as opened:
        yield opened


NO_SCROLLING = "return document.documentElement.scrollWidth <= window.innerWidth"


@pytest.mark.parametrize("task", ["question_answering", "tagging", "multiple_choice"])
def test_a_phone_needs_no_sideways_scrolling(phone, tasks_address, task):
    long = "https://example.org/" + "a" * 200
    show(phone, tasks_address, task, {name: f"{text} {long}" for name, text in VIEWS[task].items()})
    assert phone.run("return window.innerWidth") == 390
    assert phone.text("#answer") and phone.run(NO_SCROLLING)


def test_errors_are_words(phone, address):
    ask(phone, address, "topics", {"text": "a" * 1_100_000})
    phone.wait("return !document.querySelector('#error').hidden")
    assert "--max_text_bytes" in phone.text("#error")
    assert phone.run(NO_SCROLLING)
