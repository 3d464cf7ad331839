"""Every form of fine-tuning task learns and answers with a WordPiece vocabulary, in Chinese."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning.evaluation import Predictor
from albert_tf.finetuning.tasks.base import Predictions
from albert_tf.finetuning.training_examples import make_examples
from albert_tf.models.objectives import total_loss
from data_pipeline.finetuning.batches import finetuning_dataset
from data_pipeline.finetuning.squad_files import SquadSplit
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer
from tests.finetuning_cases import FORMS, LENGTHS, split_of

VOCABULARY = Path(__file__).parent / "goldens" / "wordpiece" / "vocab.txt"
# Of one to six characters; some of them are not in the vocabulary.
TEXT = """
中国 北京 哈尔滨 人民 大本营 的 是 在 战机 中国海军部队 于 年
日 月 海 研究所 组织 东京 世界 规定 我们 他们 你好 第一次世界
各国 雷达 黄河 长江 黑龙江省 史记 字母 说话 和 如果 合同
"""
WORDS = TEXT.split()


# Tiny architectures for the vocabulary.
ALBERT = AlbertConfig(
    vocab_size=WordPieceTokenizer(str(VOCABULARY)).vocab_size,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=LENGTHS.max_seq_length,
)
BERT = ALBERT.replace(embedding_size=16, parameter_sharing="none", num_hidden_layers=2)


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore:Even though the .tf.config.experimental_run_functions_eagerly")
@pytest.mark.parametrize(
    ("name", "config"),
    [
        *((name, ALBERT) for name in ("mrpc", "sts-b", "copa", "tagging", "squad1.1", "squad2.0")),
        pytest.param("squad2.0", BERT, id="squad2.0-BERT"),
    ],
)
def test_chinese_from_examples_to_answers(name, config):
    task, tokenizer = FORMS[name], WordPieceTokenizer(str(VOCABULARY))
    train = split_of(task, WORDS, 12)
    examples = make_examples(task, train, tokenizer, LENGTHS)
    dev = dataclasses.replace(train, name="dev")
    features = task.features(dev, tokenizer, LENGTHS, examples.labels, True)
    model = task.new_model(config, examples.labels, 0.0, packed=True)
    learned = task.new_objective(model)
    batch = next(iter(finetuning_dataset(examples.features, 4)))
    with tf.GradientTape() as tape:
        loss = total_loss(learned, learned.ratios(batch, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    assert np.isfinite(loss.numpy()) and tf.linalg.global_norm(gradients) > 1e-3
    kept = task.keep(features, Predictor(model, features, 8)())
    answers = task.answer(features, [kept])
    assert len(answers.values) == len(train.examples)
    assert set(task.score(features, answers)) >= set(task.metrics)
    if isinstance(train, SquadSplit):
        check_spans(train, answers)


def check_spans(train: SquadSplit, answers: Predictions) -> None:
    """All of the best answers are parts of their contexts."""
    for question in train.examples:
        best = answers.details.best[question.id]
        context = train.content.contexts[question.context]
        assert best and all(answer.text and answer.text in context for answer in best)
