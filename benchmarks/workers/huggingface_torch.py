"""Hugging Face transformers, PyTorch classes."""

import protocol
import torch
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
    AlbertModel,
)

_IGNORED = -100


def make_config():
    """ALBERT base without dropout."""
    return AlbertConfig(
        vocab_size=protocol.VOCAB_SIZE,
        embedding_size=protocol.EMBEDDING_SIZE,
        hidden_size=protocol.HIDDEN_SIZE,
        num_hidden_layers=protocol.NUM_LAYERS,
        num_attention_heads=protocol.NUM_HEADS,
        intermediate_size=protocol.INTERMEDIATE_SIZE,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.0,
        num_labels=protocol.NUM_CLASSES,
    )


def make_inputs(batch):
    """What the models take."""
    return {
        "input_ids": torch.tensor(batch["word_ids"]).long(),
        "attention_mask": torch.tensor(batch["mask"]).long(),
        "token_type_ids": torch.tensor(batch["type_ids"]).long(),
    }


def build(case):
    """A forward pass or a training step of the PyTorch class of the case's task."""
    mixed = case["precision"] == "bfloat16"
    batch = protocol.make_batch(case)
    inputs = make_inputs(batch)
    if case["task"] == "classification":
        model = AlbertForSequenceClassification(make_config())
        inputs["labels"] = torch.tensor(batch["label"]).long()
    elif case["pass"] == "forward":
        model = AlbertModel(make_config())
    else:
        model = AlbertForPreTraining(make_config())
        labels = torch.full(batch["word_ids"].shape, _IGNORED)
        positions = torch.tensor(batch["positions"]).long()
        labels.scatter_(1, positions, torch.tensor(batch["masked_ids"]).long())
        inputs["labels"] = labels
        inputs["sentence_order_label"] = torch.tensor(batch["order"]).long()
    if case["pass"] == "forward":
        inputs.pop("labels", None)
        model = model.eval().to(torch.bfloat16 if mixed else torch.float32)

        @torch.inference_mode()
        def forward():
            return model(**inputs)[0].float().numpy()

        return forward

    def step():
        model.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = model.train()(**inputs).loss
        loss.backward()
        return loss.item()

    return step


if __name__ == "__main__":
    protocol.serve(build)
