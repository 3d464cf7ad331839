"""A whole fine-tuning with Hugging Face's Trainer and PyTorch, from files to the dev score."""

import tempfile

import finetuning_data
import finetuning_huggingface
import transformers
from transformers import AlbertTokenizerFast, Trainer, TrainingArguments


def main() -> None:
    case = finetuning_data.request()
    tokenizer = AlbertTokenizerFast(vocab_file=case["vocab_file"])
    train = finetuning_huggingface.Data(case, "train", tokenizer)
    dev = finetuning_huggingface.Data(case, "dev", tokenizer)
    name = f"AlbertFor{finetuning_huggingface.CLASS_NAMES[case['task']]}"
    model = getattr(transformers, name)(finetuning_huggingface.make_config(case))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                folder,
                learning_rate=case["learning_rate"],
                num_train_epochs=1,
                warmup_ratio=0.1,
                weight_decay=0.01,
                per_device_train_batch_size=case["batch_size"],
                per_device_eval_batch_size=case["eval_batch_size"],
                report_to=[],
                use_cpu=True,
            ),
            train_dataset=train.features,
            eval_dataset=dev.features,
            data_collator=finetuning_huggingface.Collator(tokenizer, "pt"),
        )
        trainer.train()
        trainer.save_model(folder)
        finetuning_data.answer(case, dev.score(trainer.predict(dev.features).predictions))


if __name__ == "__main__":
    main()
