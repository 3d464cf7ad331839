"""Hooks: the work between the updates of a run, one hook per file; `train` orders them."""
