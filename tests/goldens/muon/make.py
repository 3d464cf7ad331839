"""Six updates of Muon by another library: `python make.py FOLDER`, where it is installed.

With PyTorch 2.13 it writes FOLDER/torch.npz, with Keras 3.15 FOLDER/keras.npz.
"""

import importlib.util
import pathlib
import sys

import numpy as np

SHAPES = {"wide": (6, 16), "tall": (16, 6), "square": (8, 8)}
SETTINGS = {"learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.3}
STEPS = 6


def torch_weights(weights, gradients):
    import torch

    # PyTorch orthogonalizes in bfloat16, which leaves two digits to compare.
    torch.Tensor.bfloat16 = torch.Tensor.clone
    parameter = torch.nn.Parameter(torch.tensor(weights))
    rate = SETTINGS["learning_rate"]
    optimizer = torch.optim.Muon(
        [parameter],
        rate,
        SETTINGS["weight_decay"],
        SETTINGS["momentum"],
        adjust_lr_fn="match_rms_adamw",
    )
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return parameter.detach().numpy()


def keras_weights(weights, gradients):
    import keras

    variable = keras.Variable(weights, name="kernel")
    optimizer = keras.optimizers.Muon(**SETTINGS)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    return keras.ops.convert_to_numpy(variable)


if __name__ == "__main__":
    library = "torch" if importlib.util.find_spec("torch") else "keras"
    update = {"torch": torch_weights, "keras": keras_weights}[library]
    rng, arrays = np.random.default_rng(0), dict(SETTINGS)
    for name, shape in SHAPES.items():
        weights = rng.normal(size=shape).astype(np.float32)
        gradients = rng.normal(size=[STEPS, *shape]).astype(np.float32)
        arrays |= {f"{name}/weights": weights, f"{name}/gradients": gradients}
        arrays[f"{name}/updated"] = update(weights, gradients)
    np.savez_compressed(pathlib.Path(sys.argv[1]) / f"{library}.npz", **arrays)
