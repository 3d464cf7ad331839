"""A whole fine-tuning with Hugging Face's TFAlbert and Keras' fit, from files to the dev score."""

import tempfile

import finetuning_data
import finetuning_huggingface
import numpy as np
import tensorflow as tf
import transformers
from transformers import AlbertTokenizerFast, create_optimizer


def outputs_of(model, batches: tf.data.Dataset, is_span: bool):
    """Logits of all rows; windows of different batches have different lengths."""
    run = tf.function(lambda batch: model(batch, training=False), reduce_retracing=True)
    found = [run(batch) for batch in batches]
    if not is_span:
        return np.concatenate([batch.logits.numpy() for batch in found])
    starts = [row for batch in found for row in batch.start_logits.numpy()]
    return starts, [row for batch in found for row in batch.end_logits.numpy()]


def main() -> None:
    case = finetuning_data.request()
    tokenizer = AlbertTokenizerFast(vocab_file=case["vocab_file"])
    collator = finetuning_huggingface.Collator(tokenizer, "np")
    train = finetuning_huggingface.Data(case, "train", tokenizer)
    dev = finetuning_huggingface.Data(case, "dev", tokenizer)
    name = f"TFAlbertFor{finetuning_huggingface.CLASS_NAMES[case['task']]}"
    model = getattr(transformers, name)(finetuning_huggingface.make_config(case))

    def batches(data, size: int, shuffle: bool) -> tf.data.Dataset:
        return model.prepare_tf_dataset(
            data.features,
            batch_size=size,
            shuffle=shuffle,
            collate_fn=collator,
            drop_remainder=False,
        )

    training = batches(train, case["batch_size"], True)
    steps = len(training)
    optimizer, _ = create_optimizer(
        case["learning_rate"], steps, num_warmup_steps=steps // 10, weight_decay_rate=0.01
    )
    model.compile(optimizer=optimizer)
    model.fit(training, epochs=1, verbose=2)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
    evaluation = batches(dev, case["eval_batch_size"], False)
    inputs = evaluation.map(lambda *batch: batch[0])
    finetuning_data.answer(case, dev.score(outputs_of(model, inputs, case["task"] == "squad1.1")))


if __name__ == "__main__":
    main()
