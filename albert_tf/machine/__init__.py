"""The machine that a graph is made for: its devices and its compiler."""
