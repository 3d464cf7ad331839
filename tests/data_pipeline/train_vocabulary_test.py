"""The program in this process: what it writes, what it says, and its flags' limits."""

from __future__ import annotations

import pytest

from data_pipeline.tokenizers.loading import load_tokenizer


@pytest.fixture
def train(result_of):
    """(*flags) -> exit code, stdout, stderr."""

    def run(*argv: str) -> tuple[int, str, str]:
        found = result_of("data_pipeline.train_vocabulary", *argv)
        return found.returncode, found.stdout, found.stderr

    return run


def test_a_vocabulary_and_the_next_command(train, tmp_path, small_corpus):
    (tmp_path / "a.txt").write_text(small_corpus(60))
    files = f"--input={tmp_path}/a.txt", f"--output_dir={tmp_path}/v", "--vocab_size=48"
    code, shown, errors = train(
        *files, "--nolower_case", "--rules=plain", "--input_format=lines", "--language=de"
    )
    assert code == 0 and "corpus: 100%" in errors
    tokenizer = load_tokenizer(f"{tmp_path}/v/spiece.model")
    assert (tokenizer.settings.lower, tokenizer.settings.rules) == (False, "plain")
    wrote, sample, following = shown.splitlines()
    assert wrote == (
        f"Wrote {tmp_path}/v/spiece.model: 48 pieces, fingerprint {tokenizer.fingerprint[:12]}."
    )
    assert sample.startswith("Sample: ") and len(sample.split()) > 10
    assert following == (
        f"Next: python -m data_pipeline.create_pretraining_data --input={tmp_path}/a.txt "
        f"--vocab_file={tmp_path}/v/spiece.model --input_format=lines --language=de "
        "--output_dir=DATA"
    )
    code, _, errors = train(*files)
    assert code == 2 and "exists already; choose another folder or give --overwrite" in errors
    others = ("--overwrite", "--tokenizer=wordpiece", "--vocab_size=60")
    code, _, errors = train(*files, *others, "--input_sentence_size=200")
    assert code == 2 and "--input_sentence_size=200 is for --tokenizer=sentencepiece" in errors
    code, _, errors = train(*files, *others)
    assert code == 0, errors
    assert load_tokenizer(f"{tmp_path}/v/vocab.txt").vocab_size == 60


def test_text_that_is_not_prose_is_named(train, tmp_path, small_corpus):
    page = "".join(f"<p>{line}</p>\n" for line in small_corpus(60).splitlines())
    (tmp_path / "page.html").write_text(page)
    code, _, errors = train(
        f"--input={tmp_path}/page.html", f"--output_dir={tmp_path}/v", "--vocab_size=60"
    )
    assert code == 0 and f"warning: {tmp_path}/page.html: most lines contain tags" in errors
