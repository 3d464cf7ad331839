"""The demonstration: the whole job on real text, each step an ordinary binary."""
