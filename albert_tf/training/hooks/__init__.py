"""Hooks: the work between the updates of a run, one a file; `train` puts them in order."""
