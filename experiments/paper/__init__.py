"""The tables of Lan et al. (ICLR 2020) as commands: scaled down for a CPU, or as on a TPU."""
