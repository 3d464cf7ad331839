"""Hugging Face transformers, PyTorch classes."""

import protocol
import torch
import transformers

_IGNORED = -100


def make_model(case, end):
    """The model without dropout whose class has this suffix, e.g. "ForSequenceClassification"."""
    kind = protocol.huggingface_kind(case)
    config = getattr(transformers, f"{kind}Config")(**protocol.huggingface_settings(kind))
    return getattr(transformers, f"{kind}{end}")(config)


def make_inputs(batch):
    """The inputs of the models."""
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
        model = make_model(case, "ForSequenceClassification")
        inputs["labels"] = torch.tensor(batch["label"]).long()
    elif case["pass"] == "forward":
        model = make_model(case, "Model")
    else:
        model = make_model(case, "ForPreTraining")
        labels = torch.full(batch["word_ids"].shape, _IGNORED)
        positions = torch.tensor(batch["positions"]).long()
        labels.scatter_(1, positions, torch.tensor(batch["masked_ids"]).long())
        inputs["labels"] = labels
        order_labels = protocol.ORDER_LABELS[protocol.huggingface_kind(case)]
        inputs[order_labels] = torch.tensor(batch["order"]).long()
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
