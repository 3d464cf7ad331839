"""Random models of transformers, their answers, and six updates of one: `python make.py FOLDER`.

Runs where PyTorch and transformers are; writes into FOLDER/<name> what `save_pretrained` writes,
and outputs.npz. With --all: every class and form that is read here; otherwise the few goldens.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers

SIZES = dict(num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=16)
WIDTHS = dict(vocab_size=40, hidden_size=16, intermediate_size=24)
DISTIL = dict(vocab_size=40, dim=16, hidden_dim=24, n_layers=2, n_heads=4)


def bert(head: str, act: str, **more):
    config = transformers.BertConfig(**SIZES, **WIDTHS, hidden_act=act, **more)
    return getattr(transformers, f"Bert{head}")(config)


def electra(head: str, act: str, embedding_size: int):
    config = transformers.ElectraConfig(
        **SIZES, **WIDTHS, hidden_act=act, embedding_size=embedding_size
    )
    return getattr(transformers, f"Electra{head}")(config)


def distilbert(head: str):
    config = transformers.DistilBertConfig(**DISTIL, max_position_embeddings=16)
    return getattr(transformers, f"DistilBert{head}")(config)


GOLDENS = {
    "bert": lambda: bert("ForPreTraining", "gelu_new"),
    "bert_classifier": lambda: bert("ForSequenceClassification", "gelu", num_labels=3),
    "electra": lambda: electra("ForPreTraining", "gelu", 8),
    "distilbert": lambda: distilbert("ForMaskedLM"),
}
ALL = {
    **{
        f"bert_{head}_{act}": lambda head=head, act=act: bert(head, act)
        for act in ("gelu", "gelu_new")
        for head in (
            "Model",
            "ForPreTraining",
            "ForMaskedLM",
            "ForSequenceClassification",
            "ForTokenClassification",
            "ForQuestionAnswering",
            "ForMultipleChoice",
        )
    },
    **{
        f"electra_{head}_{act}_{size}": lambda head=head, act=act, size=size: electra(
            head, act, size
        )
        for act, size in (("gelu", 8), ("gelu_new", 8), ("gelu", 16))
        for head in ("Model", "ForPreTraining", "ForTokenClassification", "ForQuestionAnswering")
    },
    "electra_ForMaskedLM": lambda: electra("ForMaskedLM", "gelu", 8),
    **{
        f"distilbert_{head}": lambda head=head: distilbert(head)
        for head in ("Model", "ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")
    },
    "without_pooler": lambda: transformers.BertModel(bert("Model", "gelu").config, False),
    "sharded": lambda: bert("Model", "gelu"),
}


def batch(model) -> dict:
    """Ids [3, 14] with padding and two segments; no [PAD], whose row PyTorch never trains."""
    random = np.random.RandomState(1)
    ids, mask = torch.tensor(random.randint(1, 40, [3, 14])), torch.ones([3, 14], dtype=torch.long)
    mask[1, 9:] = mask[2, 5:] = 0
    types = torch.zeros_like(ids)
    types[:, 6:] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types * mask}
    if model.config.model_type == "distilbert":
        del inputs["token_type_ids"]
    if type(model).__name__.endswith("MultipleChoice"):
        inputs = {name: value[None] for name, value in inputs.items()}
    return inputs


def six_updates(model) -> dict:
    """The weights after six updates of AdamW without dropout; biases and norms do not decay."""
    weights = dict(model.named_parameters())
    plain = {name for name in weights if "bias" in name or "LayerNorm" in name}
    groups = [
        {"params": [weights[name] for name in plain], "weight_decay": 0.0},
        {"params": [weights[name] for name in weights.keys() - plain], "weight_decay": 0.01},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, eps=1e-6)
    for _ in range(6):
        optimizer.zero_grad()
        model(**batch(model), labels=torch.tensor([0, 2, 1])).loss.backward()
        optimizer.step()
    return {f"after/{name}": weight.detach().numpy() for name, weight in weights.items()}


def write(name: str, make, folder: pathlib.Path) -> None:
    torch.manual_seed(3)
    model = make().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    size = "8KB" if name == "sharded" else "1GB"
    model.save_pretrained(folder / name, max_shard_size=size)
    with torch.no_grad():
        outputs = {key: value.numpy() for key, value in model(**batch(model)).items()}
    if name == "bert_classifier":
        outputs |= six_updates(model)
    np.savez_compressed(folder / name / "outputs.npz", **outputs)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    for each, make in (ALL if "--all" in sys.argv else GOLDENS).items():
        write(each, make, target)
