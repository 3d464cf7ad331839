"""The tables of Lan et al. (ICLR 2020) as commands: in small here, as they were on a TPU."""
