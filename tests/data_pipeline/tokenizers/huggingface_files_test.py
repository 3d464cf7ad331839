"""Hugging Face's files beside a vocabulary: followed, harmless or refused with their names."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.finetuning.alignment import align
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.data_pipeline.conftest import rows

GOLDENS = Path(__file__).parents[2] / "goldens" / "tokenizer_folders"
ROWS = [json.loads(line) for line in (GOLDENS / "ids.jsonl").read_bytes().splitlines()]
SPECIAL = {"spiece.model": ("<pad>", "<unk>"), "vocab.txt": ("[PAD]", "[UNK]")}


def folder_with(folder, vocabulary_file, /, **files):
    """A folder with a vocabulary and files of JSON, by names without ending; its vocabulary."""
    folder.mkdir(exist_ok=True)
    shutil.copy(GOLDENS / vocabulary_file, folder)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder / vocabulary_file)


def as_fast(vocabulary, config):
    """The tokenizer.json that transformers makes of a tokenizer with this configuration."""
    lower = config.get("do_lower_case", True)
    if vocabulary == "vocab.txt":
        normalizer = {
            "type": "BertNormalizer", "clean_text": True, "lowercase": lower,
            "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
            "strip_accents": config.get("strip_accents"),
        }  # fmt: skip
        splitter, model = {"type": "BertPreTokenizer"}, {"type": "WordPiece"}
    else:
        quotes = [
            {"type": "Replace", "pattern": {"String": each}, "content": '"'}
            for each in ("``", "''")
        ]
        accents = [] if config.get("keep_accents") else [{"type": "NFKD"}, {"type": "StripAccents"}]
        case = [{"type": "Lowercase"}] if lower else []
        rest = [
            {"type": "Precompiled", "precompiled_charsmap": "AAA="},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]
        steps = [*quotes, *accents, *case, *rest]
        normalizer = {"type": "Sequence", "normalizers": steps}
        splits = [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁"}]
        splitter, model = {"type": "Sequence", "pretokenizers": splits}, {"type": "Unigram"}
    tokens = [
        {"id": i, "content": content, "special": True}
        for i, content in enumerate((*SPECIAL[vocabulary], "[CLS]", "[SEP]", "[MASK]"))
    ]
    return {
        "version": "1.0", "added_tokens": tokens, "normalizer": normalizer,
        "pre_tokenizer": splitter, "model": model,
    }  # fmt: skip


@pytest.mark.parametrize(
    "row",
    rows(ROWS, ROWS[3], ROWS[9]),
    ids=lambda row: "-".join([row["vocabulary"], *map(str, row["config"])]),
)
def test_every_path_gives_the_ids_of_transformers(tmp_path, row):
    """Python, many texts at once, the fast encoder, the graph, and both alignments."""
    name, config = row["vocabulary"], row["config"]
    texts, expected = list(row["ids"]), list(row["ids"].values())
    rules = "huggingface" if name == "spiece.model" else None
    tokenizer = load_tokenizer(
        folder_with(tmp_path / "slow", name, tokenizer_config=config), rules=rules
    )
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts] == expected
    flat = fast_encoder(tokenizer)([text.replace("\n", " ") for text in texts])
    assert flat.ids.tolist() == list(itertools.chain.from_iterable(expected))
    assert flat.lengths.tolist() == [len(ids) for ids in expected]
    graph = graph_tokenizer(tokenizer)
    assert graph.tokenize(tf.constant(texts)).to_list() == expected
    aligned = [align(tokenizer, text) for text in texts]
    assert [pieces.ids.tolist() for pieces in aligned] == expected
    in_graph = align_graph(graph, Characters(tf.constant(texts)))
    for field in ("ids", "starts", "ends"):
        expected = [getattr(pieces, field).tolist() for pieces in aligned]
        assert getattr(in_graph, field).to_list() == expected
    fast = load_tokenizer(
        folder_with(tmp_path / "fast", name, tokenizer=as_fast(name, config)), rules=rules
    )
    assert fast.settings == tokenizer.settings
    assert fast.encode_batch(texts) == list(row["ids"].values())


SAVED = {
    "spiece.model": {
        "tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": False,
        "remove_space": True, "sp_model_kwargs": {}, "bos_token": "[CLS]", "eos_token": "[SEP]",
        "mask_token": {"content": "[MASK]", "lstrip": True}, "additional_special_tokens": [],
        "added_tokens_decoder": {"0": {"content": "<pad>", "special": True}},
        "model_max_length": 512,
    },
    "vocab.txt": {
        "tokenizer_class": "BertTokenizerFast", "do_lower_case": True, "strip_accents": None,
        "never_split": None, "do_basic_tokenize": True, "clean_up_tokenization_spaces": True,
        "cls_token": "[CLS]", "extra_special_tokens": {}, "name_or_path": "somewhere",
        "added_tokens_decoder": {"4": {"content": "[MASK]", "special": True}},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_what_transformers_writes_is_followed_or_harmless(tmp_path, name):
    roles = {"pad_token": SPECIAL[name][0], "unk_token": {"content": SPECIAL[name][1]}}
    files = {"tokenizer_config": SAVED[name], "special_tokens_map": roles}
    tokenizer = load_tokenizer(folder_with(tmp_path, name, **files, added_tokens={"[MASK]": 4}))
    assert tokenizer.settings.lower == SAVED[name]["do_lower_case"]
    assert tokenizer.settings.strip_accents is True


def added(file, token, number):
    """The content of a file that adds a token."""
    decoder = {str(number): {"content": token, "special": False}}
    return {
        "added_tokens": {token: number},
        "tokenizer_config": {"added_tokens_decoder": decoder},
        "special_tokens_map": {"additional_special_tokens": [token]},
        "tokenizer": {"added_tokens": [{"id": number, "content": token}]},
    }[file]


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize(
    "file", ["added_tokens", "tokenizer_config", "special_tokens_map", "tokenizer"]
)
def test_added_tokens_are_refused_by_name(tmp_path, name, file):
    for token in ("zor", "the", "[E1]"):
        path = folder_with(tmp_path, name, **{file: added(file, token, 5)})
        with pytest.raises(UserError) as error:
            load_tokenizer(path)
        for part in (f"{file}.json: ", repr(token), "Remove it from that file"):
            assert part in str(error.value)


BERT = as_fast("vocab.txt", {})
HALF = {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}]}
OTHER = {"type": "Replace", "pattern": {"String": "ß"}, "content": "ss"}


CONTRADICTS = ".*lower True: they contradict"
REFUSED = {  # Vocabulary -> (tokenizer_config.json, part of the error).
    "spiece.model": [
        ({"remove_space": False}, "remove_space is False"),
        ({"sp_model_kwargs": {"alpha": 1}}, "sp_model_kw"),
        ({"tokenizer_class": "XLNetTokenizer"}, "'XLNetTok"),
    ],
    "vocab.txt": [
        ({"do_basic_tokenize": False}, "do_basic_tokenize is F"),
        ({"never_split": ["a"]}, r"never_split is \['a'\]"),
        ({"do_lower_case": "no"}, "true or false; received 'no'"),
        ({"word_tokenizer": "mecab"}, "key word_tokenizer is unk"),
        ({"unk_token": "<unk>"}, "unk_token is '<unk>'.*'.UNK.'"),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "Japanese"),
        ([], r"should hold a JSON object; received \[\]"),
    ],
}
REFUSED_FAST = {  # Vocabulary -> (what differs from tokenizer.json, part of the error).
    "spiece.model": [
        ({"normalizer": HALF}, "NFKD and StripAccents tog"),
        ({"normalizer": OTHER}, "normalizer is .*'ß'"),
    ],
    "vocab.txt": [
        ({"normalizer": HALF}, "normalizer is .*BertNormalizer"),
        ({"normalizer": {**BERT["normalizer"], "clean_text": False}}, "clean_text is False"),
        ({"pre_tokenizer": None}, "pre_tokenizer is None"),
        ({"model": {"type": "BPE"}}, "model.type is 'BPE'"),
        ({"model": {"max_input_chars_per_word": 9}}, "max_input_chars_per_word is 9"),
        ({"model": {"vocab": {"[PAD]": 0}}}, "has other pieces or ids than .*vocab.txt"),
        ({"normalizer": {"type": "Sequence"}}, "tokenizer.json.* is not as .*'normalizers'"),
        ({"added_tokens": [{"content": "[PAD]"}]}, "is not as transformers writes it .*'id'"),
    ],
}
FAST = {"spiece.model": as_fast("spiece.model", {}), "vocab.txt": BERT}


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        *((name, {"tokenizer_config": each}, said)
          for name, table in REFUSED.items() for each, said in table),
        *((name, {"tokenizer": FAST[name] | each}, said)
          for name, table in REFUSED_FAST.items() for each, said in table),
        ("spiece.model", {"special_tokens_map": {"cls_token": "<s>"}}, "cls_token is '<s>'.*'.CLS"),
        ("spiece.model",
         {"tokenizer": FAST["spiece.model"], "tokenizer_config": {"do_lower_case": False}},
         "tokenizer_config.json has do_lower_case False, and" + CONTRADICTS),
        ("vocab.txt",
         {"tokenizer_settings": {"lower": False, "rules": "google"}, "tokenizer": BERT},
         "tokenizer_settings.json has lower False, and" + CONTRADICTS),
    ],
)  # fmt: skip
def test_what_changes_ids_and_cannot_be_followed_is_named(tmp_path, name, files, message):
    with pytest.raises(UserError, match=message):
        load_tokenizer(folder_with(tmp_path, name, **files))


def test_what_is_said_by_hand_comes_first(tmp_path):
    path = folder_with(tmp_path, "vocab.txt", tokenizer_config={"do_lower_case": False})
    by_hand = load_tokenizer(path, lower=True).settings
    assert (by_hand.lower, by_hand.strip_accents, by_hand.rules) == (True, True, "huggingface")
    assert load_tokenizer(path, strip_accents=True).settings.lower is False
    with pytest.raises(UserError, match="--space_chinese.* is for WordPiece"):
        load_tokenizer(folder_with(tmp_path, "spiece.model"), space_chinese=True)


OWN = {
    "vocabulary": {"kind": "albert_vocabulary", "vocab_fingerprint": "5e"},
    "model": {"task": "classification"},
    "manifest": {"kind": "albert_pretraining", "vocab_fingerprint": "5e"},
}


@pytest.mark.parametrize("own", OWN)
def test_settings_that_were_written_are_missed(tmp_path, own):
    path = folder_with(tmp_path, "spiece.model", **{own: OWN[own]})
    with pytest.raises(UserError, match=f"tokenizer_settings.json is missing.*{own}.json"):
        load_tokenizer(path)
    assert load_tokenizer(path, lower=False).settings.lower is False  # Said by hand.
    (tmp_path / f"{own}.json").write_text('{"format": "of another program"}')
    assert load_tokenizer(path).settings.lower is True


def test_settings_belong_to_one_vocabulary(tmp_path):
    path = folder_with(tmp_path, "vocab.txt")
    stored = tmp_path / "tokenizer_settings.json"
    stored.write_bytes(load_tokenizer(path, lower=False).settings_json())
    assert load_tokenizer(path).settings.lower is False
    (tmp_path / "vocab.txt").write_text(Path(path).read_text("utf-8") + "one_more\n", "utf-8")
    with pytest.raises(
        UserError, match=r"vocab.txt is not the vocabulary that .*settings.json was"
    ):
        load_tokenizer(path)
    stored.write_text('{"lower": false, "rules": "google"}')  # Of an earlier version.
    assert load_tokenizer(path).settings.lower is False


def test_a_model_keeps_its_settings(tmp_path):
    path = folder_with(tmp_path, "vocab.txt", model=OWN["model"])
    by_hand = load_tokenizer(path, lower=False)
    (tmp_path / "tokenizer_settings.json").write_bytes(by_hand.settings_json())
    assert load_tokenizer(path, lower=False, strip_accents=False).settings == by_hand.settings
    for name in ("lower", "strip_accents"):
        with pytest.raises(UserError, match=f"^{name}=true .* contradicts .*settings.json"):
            load_tokenizer(path, **{name: True})
