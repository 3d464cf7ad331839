"""Runs of fine-tuning: their files and scores, series of runs, ensembles, GLUE submissions."""
