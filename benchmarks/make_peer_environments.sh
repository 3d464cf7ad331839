#!/usr/bin/env bash
# Creates virtual environments for the libraries with which benchmarks/encoder.py and
# benchmarks/finetuning.py compare: they cannot be installed together, or together with this project.
# ALBERT_TF_PEERS=FOLDER lets tests use them, such as tests/export/migration_docs_test.py.
#
#   benchmarks/make_peer_environments.sh [FOLDER]      (default: benchmarks/.peers)
#
# FOLDER/tf      Python 3.11: Hugging Face transformers for TensorFlow, the Model Garden
# FOLDER/torch   Python 3.11: Hugging Face transformers for PyTorch, ONNX Runtime
# FOLDER/keras   Python 3.12: KerasHub on Keras 3
# FOLDER/jax     Python 3.12: JAX, for tests/experiments/weights/accelerator_test.py
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
peers="${1:-$here/.peers}"
mkdir -p "$peers"

make_environment() { # name, Python version
  local found
  found="$("$here/../scripts/find_python.sh" "$2")"
  [ -x "$peers/$1/bin/python" ] || "${found#* }" -m venv "$peers/$1"
  "$peers/$1/bin/pip" install --quiet --upgrade pip
}

make_environment tf 3.11
"$peers/tf/bin/pip" install --quiet tensorflow==2.15.1 "transformers==4.44.2"
"$peers/tf/bin/pip" install --quiet --no-deps tf-models-official==2.15.0
"$peers/tf/bin/pip" install --quiet tf-slim gin-config pyyaml pandas scipy sacrebleu seqeval \
  immutabledict psutil "sentencepiece<0.2.2" tensorflow-datasets tensorflow-model-optimization tf-keras==2.15.1 \
  "datasets<4" "pyarrow<21"
"$peers/tf/bin/pip" install --quiet tensorflow==2.15.1 keras==2.15.0 "numpy<2"

make_environment torch 3.11
"$peers/torch/bin/pip" install --quiet torch "transformers>=4.57,<5" onnx onnxruntime onnxscript \
  numpy psutil accelerate datasets sentencepiece protobuf "optimum[onnxruntime]"

make_environment keras 3.12
"$peers/keras/bin/pip" install --quiet tensorflow==2.20.0 tensorflow-text==2.20.1 \
  keras-hub==0.32.0 psutil safetensors

make_environment jax 3.12
"$peers/jax/bin/pip" install --quiet jax numpy absl-py sentencepiece

echo "Environments: $peers"
