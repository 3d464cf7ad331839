"""Losses of distillation and their gradients by PyTorch, from formulas: `python make.py FOLDER`.

Runs where PyTorch and transformers are; writes FOLDER/losses.npz, and two BERT with their terms:
FOLDER/teacher, FOLDER/student and FOLDER/terms.npz. A second argument is the seed.
"""

import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers

LENGTHS = [7, 4, 1]
TEMPERATURE = 2.0


def soft(student, teacher, temperature=TEMPERATURE):
    """Hinton et al. (2015), as DistilBERT has it."""
    target = F.softmax(teacher / temperature, -1)
    logs = F.log_softmax(student / temperature, -1)
    return F.kl_div(logs, target, reduction="none").sum(-1) * temperature**2


def soft_binary(student, teacher):
    ours, theirs = (torch.sigmoid(each / TEMPERATURE) for each in (student, teacher))
    parts = theirs * (theirs / ours).log() + (1 - theirs) * ((1 - theirs) / (1 - ours)).log()
    return parts * TEMPERATURE**2


def cosine(student, teacher):
    flat = student.flatten(0, -2), teacher.flatten(0, -2)
    ones = torch.ones(len(flat[0]))
    loss = F.cosine_embedding_loss(*flat, ones, reduction="none")
    return loss.reshape(student.shape[:-1])


def scores(student, teacher):
    """TinyBERT: scores before the softmax, here of real tokens alone, a row at a time."""
    rows = []
    for row, length in enumerate(LENGTHS):
        each = [
            query[row, :, :length] @ key[row, :, :length].transpose(-1, -2)
            for query, key in (student, teacher)
        ]
        values = F.mse_loss(*each, reduction="none").mean(dim=(0, 2))
        rows.append(F.pad(values, (0, max(LENGTHS) - length)))
    return torch.stack(rows)


def relations(student, teacher, heads=4):
    """MiniLM v2: KL of softmax(X X^T / sqrt(d)), in relation heads that have any number."""
    rows = []
    for row, length in enumerate(LENGTHS):
        logs = []
        for each in (student, teacher):  # [B, N, S, D]
            x = each[row, :, :length].transpose(0, 1).reshape(length, heads, -1).transpose(0, 1)
            logs.append(F.log_softmax(x @ x.transpose(1, 2) / math.sqrt(x.shape[-1]), -1))
        values = F.kl_div(logs[0], logs[1], reduction="none", log_target=True).sum(-1).mean(0)
        rows.append(F.pad(values, (0, max(LENGTHS) - length)))
    return torch.stack(rows)


def losses() -> dict:
    """Name -> values of weights w, of a student's and a teacher's tensors, and the gradient."""
    cases = {
        "divergence": (soft, [3, 7, 5], [3, 7, 5]),
        "binary_divergence": (soft_binary, [3, 5], [3, 5]),
        "cosine_distance": (cosine, [3, 7, 6], [3, 7, 6]),
        "mean_square": (
            lambda s, t: F.mse_loss(s, t, reduction="none").mean(-1), [3, 7, 6], [3, 7, 6],
        ),
        "score_difference": (scores, [2, 3, 2, 7, 4], [2, 3, 2, 7, 6]),
        "relation_divergence": (relations, [3, 2, 7, 6], [3, 5, 7, 8]),
    }  # fmt: skip
    found = {}
    for name, (function, *shapes) in cases.items():
        student, teacher = (torch.randn(shape) for shape in shapes)
        student.requires_grad_()
        values = function(student, teacher)
        weights = torch.rand(values.shape)
        (values * weights).sum().backward()
        arrays = {"student": student, "teacher": teacher, "values": values, "weights": weights}
        arrays["gradient"] = student.grad
        found |= {f"{name}/{key}": value.detach().numpy() for key, value in arrays.items()}
    return found


def bert(layers: int):
    config = transformers.BertConfig(
        vocab_size=48, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=32, num_labels=3,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def states(model, inputs):
    """Logits, hidden states, and queries, keys and values [B, N, S, D] of each layer."""
    seen = {}
    for number, layer in enumerate(model.bert.encoder.layer):
        for name in ("query", "key", "value"):
            module = getattr(layer.attention.self, name)
            module.register_forward_hook(
                lambda _, __, out, at=(number, name): seen.__setitem__(at, out)
            )
    outputs = model(**inputs, output_hidden_states=True)
    each = [
        [
            seen[number, name].unflatten(-1, (2, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        ]
        for number in range(len(model.bert.encoder.layer))
    ]
    return outputs.logits, outputs.hidden_states, each


def terms(folder: pathlib.Path) -> dict:
    """Each term's value, and the gradients of the weighted sum of all."""
    teacher, student = bert(4), bert(2)
    for name, model in (("teacher", teacher), ("student", student)):
        model.save_pretrained(folder / name)
    width = max(LENGTHS)
    mask = (torch.arange(width) < torch.tensor(LENGTHS)[:, None]).long()
    ids, labels = torch.randint(1, 40, [3, width]), torch.tensor([0, 2, 1])
    kernel = torch.randn(16, 16, requires_grad=True)
    bias = torch.randn(16, requires_grad=True)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        their_logits, their_hidden, theirs = states(teacher, inputs)
    logits, hidden, ours = states(student, inputs)
    real = mask.bool()

    def root(pair):
        query, key, _ = pair
        return query / math.sqrt(query.shape[-1]), key

    values = {
        "logits": soft(logits, their_logits).mean(),
        "labels": F.cross_entropy(logits, labels),
        "cosine": cosine(hidden[-1], their_hidden[-1])[real].mean(),
        "hidden": sum(
            F.mse_loss((x @ kernel + bias)[real], y[real])
            for x, y in zip(hidden, their_hidden[::2])
        ),
        "attention": sum(
            scores(root(x), root(y))[real].mean() for x, y in zip(ours, (theirs[1], theirs[3]))
        ),
        "relations": sum(
            relations(x, y, 8)[real].mean() for x, y in zip(ours[-1], theirs[-1])
        ),
    }  # fmt: skip
    weights = {name: 0.5 + number for number, name in enumerate(values)}
    sum(weights[name] * value for name, value in values.items()).backward()
    found = {"ids": ids, "mask": mask, "labels": labels, "kernel": kernel, "bias": bias}
    found |= {f"value/{name}": value for name, value in values.items()}
    found |= {f"gradient/{name}": each.grad for name, each in student.named_parameters()}
    found |= {"gradient/kernel": kernel.grad, "gradient/bias": bias.grad}
    arrays = {name: value.detach().numpy() for name, value in found.items()}
    return arrays | {f"weight/{name}": np.float32(weight) for name, weight in weights.items()}


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    np.savez_compressed(target / "losses.npz", **losses())
    np.savez_compressed(target / "terms.npz", **terms(target))
