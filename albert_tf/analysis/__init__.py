"""The costs of a configuration: parameters, operations, memory, and the paper's tables of them."""
