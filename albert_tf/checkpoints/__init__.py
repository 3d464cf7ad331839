"""Reading and writing weights: google-research's TF1 checkpoints and this project's own model
folders.
"""
