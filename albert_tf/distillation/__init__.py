"""Distillation: a student learns from a teacher's answers and from the states of its layers."""
