"""What the Model Garden's own tests ask of a module that it exports for TF Hub, asked of ours.

The assertions are those of official/nlp/tools/export_tfhub_lib_test.py (tf-models-official 2.15),
with its words and ids; only the modules are made otherwise: the encoder is the one that all tests
share, and has more words. A vocabulary has [MASK] here, always, as the Garden's has in the last of
its tests.
"""

import functools
import shutil
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text as tf_text

from albert_tf.keras_compat import keras
from albert_tf.models import AlbertEncoder
from data_pipeline.tokenizers.loading import load_tokenizer
from export.signatures.encoder import EncoderModule
from export.signatures.preprocessor import PreprocessorModule
from tests.export.conftest import loaded_as

WORDS = ["d", "ef", "abc", "xy"]  # 5 to 8, after the special pieces.
TEXTS = ["abc d ef", "ABC D EF d"]
NAMES = ("input_word_ids", "input_mask", "input_type_ids")


def vocabulary_of(kind, folder, words):
    """A vocabulary of whole words in a new folder."""
    folder.mkdir(parents=True)
    if kind == "WordPiece":
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in special + words))
        return str(folder / "vocab.txt")
    # Pieces are sorted by frequency.
    lines = (" ".join([word] * (len(words) - i)) for i, word in enumerate(words))
    with open(folder / "spiece.model", "wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=writer, model_type="word", minloglevel=2,
            vocab_size=len(words) + 7, pad_id=0, unk_id=1, bos_id=len(words) + 5,
            eos_id=len(words) + 6, control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        )  # fmt: skip
    return str(folder / "spiece.model")


@pytest.fixture(
    scope="module", params=["SentencePiece", pytest.param("WordPiece", marks=pytest.mark.table)]
)
def preprocessor(request, tmp_path_factory):
    """The folder of a module, whose vocabulary is gone from where it was."""
    folder = tmp_path_factory.mktemp("modules")
    private = folder / "private_path_component"
    loaded = loaded_as(None, load_tokenizer(vocabulary_of(request.param, private, WORDS)), 10)
    module = PreprocessorModule(loaded)
    tf.saved_model.save(module, str(folder / request.param), module.signatures())
    shutil.rmtree(private)
    return str(folder / request.param)


@pytest.fixture(scope="module")
def preprocess(preprocessor):
    return tf.saved_model.load(preprocessor)


@pytest.fixture(scope="module")
def layer(exports):
    return hub.KerasLayer(exports.paths["encoder"], trainable=True)


@pytest.fixture(scope="module")
def model(exports):
    """What the encoder was saved of."""
    return exports.models["pretrainer"]


def test_encoder_has_its_vocabulary(layer, vocabulary):
    module = layer.resolved_object
    assert not hasattr(module, "vocab_file") and not hasattr(module, "do_lower_case")
    path = module.sp_model_file.asset_path.numpy().decode()
    assert Path(path).read_bytes() == vocabulary.content()


def test_weights_come_in_order(model, layer):
    module, encoder = layer.resolved_object, model.encoder.trainable_weights
    for source, found in (
        (encoder, layer.trainable_weights),
        (encoder, module.trainable_variables),
        (encoder + model.masked_lm.trainable_weights, module.mlm.trainable_variables),
    ):
        for one, other in zip(source, found, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def tokens_of(ids, length, **others):
    """The inputs of an encoder, int32 [1, length]."""
    ids = tf.constant([ids + [0] * (length - len(ids))])
    return {"input_word_ids": ids, "input_mask": tf.ones_like(ids), "input_type_ids": 0 * ids} | {
        name: tf.constant(value) for name, value in others.items()
    }


def test_values_and_names_of_outputs(model, layer):
    # The Garden's, with nothing to read.
    inputs = dict.fromkeys(NAMES, tf.zeros([2, 10], tf.int32))
    found, expected = layer(inputs), model.encoder(inputs)
    assert found["pooled_output"].shape == (2, 32)
    assert found["sequence_output"].shape == (2, 10, 32)
    assert len(found["encoder_outputs"]) == 2
    for name in ("pooled_output", "sequence_output", "encoder_outputs"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    np.testing.assert_array_equal(found["default"], found["pooled_output"])
    asked = {**inputs, "masked_lm_positions": tf.constant([[1, 2, 9, 0], [4, 4, 0, 7]])}
    mlm, logits = layer.resolved_object.mlm(asked), model(asked)["masked_lm_logits"]
    for name in ("pooled_output", "sequence_output", "encoder_outputs"):
        np.testing.assert_allclose(mlm[name], expected[name], atol=1e-5)
    np.testing.assert_allclose(mlm["mlm_logits"], logits, atol=1e-5)


@pytest.mark.parametrize("with_mlm", [False, True])
def test_dropout_is_on_in_training_only(layer, with_mlm):
    call = layer.resolved_object.mlm if with_mlm else layer
    others = {"masked_lm_positions": [[1, 2, 3, 4]]} if with_mlm else {}

    def deviation(training):
        inputs = tokens_of([2, 5, 6, 7, 3], 5, **others)
        rows = [call(inputs, training=training)["pooled_output"] for _ in range(20)]
        return np.std(rows, axis=0).mean()

    assert deviation(training=False) < 1e-6
    assert deviation(training=True) > 1e-3


def test_length_is_known_behind_the_encoder(layer):
    specs = {name: keras.Input([10], dtype=tf.int32) for name in NAMES}
    outputs = layer(specs)
    assert outputs["pooled_output"].shape.as_list() == [None, 32]
    assert outputs["sequence_output"].shape.as_list() == [None, 10, 32]
    assert len(outputs["encoder_outputs"]) == 2


def test_pooler_is_the_trained_one(model, layer):
    """The Garden copies the one of next sentences over the encoder's; here is but one."""
    outputs = layer(tokens_of([2, 5, 3], 10))
    pooler = model.encoder.pooler(outputs["sequence_output"][:, 0])
    np.testing.assert_allclose(outputs["pooled_output"], pooler, atol=1e-5)


def test_no_path_leaks(preprocessor):
    graph = (Path(preprocessor) / "saved_model.pb").read_bytes()
    assert b"private_path_component" not in graph


def test_tokens_offsets_and_special_tokens(preprocessor, preprocess):
    is_wordpiece = preprocessor.endswith("WordPiece")
    inputs = tf.constant(TEXTS)
    expected = [[7, 5, 6], [7, 5, 6, 5]]
    assert preprocess.tokenize(inputs).to_list() == expected
    tokens, starts, limits = preprocess.tokenize_with_offsets(inputs)
    assert tokens.to_list() == expected
    if is_wordpiece:
        assert starts.to_list() == [[0, 4, 6], [0, 4, 6, 9]]
    else:  # The Garden's have none. The space is a part of the piece.
        assert starts.to_list() == [[0, 3, 5], [0, 3, 5, 8]]
    assert limits.to_list() == [[3, 5, 8], [3, 5, 8, 10]]
    special = preprocess.tokenize.get_special_tokens_dict()
    assert {name: value.numpy().item() for name, value in special.items()} == {
        "padding_id": 0, "start_of_sequence_id": 2, "end_of_segment_id": 3, "mask_id": 4,
        "vocab_size": 9 if is_wordpiece else 11,
    }  # fmt: skip
    assert (
        preprocess.tokenize.get_special_tokens_dict
        is preprocess.tokenize_with_offsets.get_special_tokens_dict
    )


def assert_inputs(found, length, ids, masks, types):
    """The first ten columns are those, and the others padding."""
    for name, rows in zip(NAMES, (ids, masks, types)):
        rows = np.array(rows)
        padded = np.pad(rows, [(0, 0), (0, length - rows.shape[1])])
        np.testing.assert_array_equal(found[name], padded, err_msg=name)


def test_text_becomes_inputs_of_the_default_length(preprocess):
    assert_inputs(
        preprocess(tf.constant(TEXTS)), 10,
        [[2, 7, 5, 6, 3, 0], [2, 7, 5, 6, 5, 3]],
        [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]],
        [[0] * 6] * 2,
    )  # fmt: skip


@pytest.mark.parametrize(("asked", "length"), [({}, 10), ({"seq_length": 256}, 256)])
@pytest.mark.parametrize("words_apart", [False, True])
def test_segments_become_inputs(preprocess, asked, length, words_apart):
    """The Garden's tokenizer of WordPiece gives [B, (words), (tokens)], which is taken, too."""
    segments = [preprocess.tokenize(tf.constant(each)) for each in (TEXTS, ["d xy", "xy abc"])]
    if words_apart:
        one_each = [tf.RaggedTensor.from_uniform_row_length(s.values, 1) for s in segments]
        segments = [s.with_values(each) for s, each in zip(segments, one_each)]
    assert_inputs(
        preprocess.bert_pack_inputs(segments, **asked), length,
        [[2, 7, 5, 6, 3, 5, 8, 3, 0, 0], [2, 7, 5, 6, 5, 3, 8, 7, 3, 0]],
        [[1, 1, 1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]],
        [[0, 0, 0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1, 0]],
    )  # fmt: skip


def test_cased_wordpiece(config, tmp_path):
    words = ["d", "##ef", "abc", "ABC"]
    path = vocabulary_of("WordPiece", tmp_path / "cased", words)
    encoder = AlbertEncoder(config.replace(num_hidden_layers=1))
    for lower in (True, False):
        loaded = loaded_as(encoder, load_tokenizer(path, lower=lower), 10)
        module = EncoderModule(loaded)
        assert module.vocab_file.asset_path.numpy().decode() == path
        assert module.do_lower_case.numpy() == lower and not hasattr(module, "sp_model_file")
    preprocess = PreprocessorModule(loaded)  # Not loaded: its objects are called by name.
    inputs = tf.constant(["abc def", "ABC DEF"])
    tokens = preprocess.tokenize.__call__(inputs)
    assert tokens.to_list() == [[7, 5, 6], [8, 1]]  # Of the Garden's by words: [[7], [5, 6]], ...
    assert_inputs(
        preprocess.__call__(inputs), 10,
        [[2, 7, 5, 6, 3], [2, 8, 1, 3, 0]], [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]], [[0] * 5] * 2,
    )  # fmt: skip
    second = preprocess.tokenize.__call__(tf.constant(["d ABC", "ABC abc"]))
    assert_inputs(
        preprocess.bert_pack_inputs.__call__([tokens, second]), 10,
        [[2, 7, 5, 6, 3, 5, 8, 3], [2, 8, 1, 3, 8, 7, 3, 0]],
        [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 0]],
        [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 0]],
    )  # fmt: skip


def static_shapes(function, *args, **kwargs):
    """The shapes that a tf.function knows of a call in it."""
    shapes = []

    @tf.function
    def caller(*args, **kwargs):
        result = function(*args, **kwargs)
        shapes.append(tf.nest.map_structure(lambda each: each.shape.as_list(), result))
        return result

    caller.get_concrete_function(*args, **kwargs)
    return shapes[0]


@pytest.mark.parametrize("rows", [7, None])
def test_static_shapes(preprocess, rows):
    """TPUs take nothing else."""
    text = tf.TensorSpec([rows], tf.string)
    assert static_shapes(preprocess.tokenize, text) == [rows, None]
    assert list(static_shapes(preprocess.tokenize_with_offsets, text)) == [[rows, None]] * 3
    assert static_shapes(preprocess, text) == {name: [rows, 10] for name in NAMES}
    pack = preprocess.bert_pack_inputs
    for ragged_rank in (1, 2):
        segments = [tf.RaggedTensorSpec([rows] + [None] * ragged_rank, tf.int32)] * 2
        assert static_shapes(pack, segments) == {name: [rows, 10] for name in NAMES}
        for length in (256, tf.constant(256)):
            asked = functools.partial(pack, seq_length=length)
            assert static_shapes(asked, segments) == {name: [rows, 256] for name in NAMES}


def test_export_of_an_export(preprocessor, preprocess, tmp_path):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    shutil.copytree(preprocessor, first)
    tf.saved_model.save(tf.saved_model.load(first), second)
    shutil.rmtree(first)
    inputs = tf.constant(TEXTS)
    found, expected = tf.saved_model.load(second)(inputs), preprocess(inputs)
    for name in NAMES:
        np.testing.assert_array_equal(found[name], expected[name])


def test_masked_words_with_the_functions_of_tensorflow_text(preprocess, layer, config):
    special = {k: int(v) for k, v in preprocess.tokenize.get_special_tokens_dict().items()}
    cls, sep, mask = (
        special[f"{name}_id"] for name in ("start_of_sequence", "end_of_segment", "mask")
    )
    texts = ["d", "abc xy", "ef d"], ["xy", "d ef", "abc d"]
    segments = [preprocess.tokenize(tf.constant(each)) for each in texts]
    segments = tf_text.WaterfallTrimmer(10 - 3).trim(segments)
    ids, types = tf_text.combine_segments(segments, start_of_sequence_id=cls, end_of_segment_id=sep)
    masked, positions, _ = tf_text.mask_language_model(
        ids,
        tf_text.RandomItemSelector(2, selection_rate=0.5, unselectable_ids=[cls, sep]),
        tf_text.MaskValuesChooser(special["vocab_size"], mask, 1.0, 0.0),
    )
    word_ids, _ = tf_text.pad_model_inputs(masked, 10, pad_value=special["padding_id"])
    type_ids, input_mask = tf_text.pad_model_inputs(types, 10)
    positions = tf.cast(tf_text.pad_model_inputs(positions, 2)[0], tf.int32)
    expected = np.array([
        [2, 5, 3, 8, 3, 0, 0, 0, 0, 0],
        [2, 7, 8, 3, 5, 6, 3, 0, 0, 0],
        [2, 6, 5, 3, 7, 5, 3, 0, 0, 0],
    ])  # fmt: skip
    for row, places in zip(expected, positions.numpy()):
        row[places[places != 0]] = mask
    np.testing.assert_array_equal(word_ids, expected)
    asked = [*zip(NAMES, (word_ids, input_mask, type_ids)), ("masked_lm_positions", positions)]
    outputs = layer.resolved_object.mlm(dict(asked))
    assert outputs["pooled_output"].shape == (3, 32)
    assert outputs["sequence_output"].shape == (3, 10, 32)
    assert outputs["mlm_logits"].shape == (3, 2, config.vocab_size)
    assert len(outputs["encoder_outputs"]) == 2


def test_special_tokens_in_a_graph_of_tensorflow_1(preprocessor):
    """As an Estimator's input function sees them: nothing is eager there."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tokenize = hub.KerasLayer(tf.saved_model.load(preprocessor).tokenize)
        special = tokenize.resolved_object.get_special_tokens_dict()
        tokens = tokenize(tf.constant(["abc", "D EF"]))
        session.run(tf.compat.v1.tables_initializer())
        numbers, ids = session.run((special, tokens.to_tensor()))
    assert int(numbers["start_of_sequence_id"]) == 2
    assert ids.tolist() == [[7, 0], [5, 6]]
