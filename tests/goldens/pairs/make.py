"""Losses of pairs of vectors by PyTorch, as sentence-transformers has them: `python make.py`.

Runs where PyTorch is; writes losses.npz next to itself: vectors, labels, and of both losses the
value (a mean) and the gradients.
"""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F


def in_batch(first, second, labels):
    """MultipleNegativesRankingLoss with its defaults: cosine similarity, scale 20, one way."""
    scores = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T * 20.0
    return F.cross_entropy(scores, torch.arange(len(scores)))


def cosine(first, second, labels):
    """CosineSimilarityLoss with its default, MSELoss."""
    return F.mse_loss(F.cosine_similarity(first, second), labels)


rng = np.random.default_rng(7)
arrays = {
    "first": rng.standard_normal([6, 8]).astype(np.float32),
    "second": rng.standard_normal([6, 8]).astype(np.float32),
    "labels": rng.random(6).astype(np.float32),
}
for loss in (in_batch, cosine):
    first, second = (torch.tensor(arrays[name], requires_grad=True) for name in ("first", "second"))
    value = loss(first, second, torch.tensor(arrays["labels"]))
    value.backward()
    arrays[f"{loss.__name__}_loss"] = value.detach().numpy()
    arrays[f"{loss.__name__}_first"] = first.grad.numpy()
    arrays[f"{loss.__name__}_second"] = second.grad.numpy()
np.savez(pathlib.Path(__file__).parent / "losses.npz", **arrays)
