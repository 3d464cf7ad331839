"""The parts of an encoder, from small to large: operations, blocks, embedding, stack."""
