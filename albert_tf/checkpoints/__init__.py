"""Reading and writing weights: google-research's TF1 checkpoints, Hugging Face's folders, and this
project's own model folders.
"""
