"""LSTMs on the Penn Treebank: Tables results_lstm and simple_experiment."""
