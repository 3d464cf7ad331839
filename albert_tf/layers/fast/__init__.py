"""Layers made fast, mostly on CPUs; fast_switch.py turns all of it on or off."""
