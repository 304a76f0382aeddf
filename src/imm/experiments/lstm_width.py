"""Our study: the whole Penn Treebank at a width of 650, between the 200 of the other studies and the paper's 1,500."""

from dataclasses import replace

from imm.experiments import lstm_epochs

BEST = {"none": [0.0, False, 0.2], "imm-streaming": [2.0, True, 0.2]}
"""Not tuned at this width: λ is that of ``lstm-perplexity``, dropout a step above its, as the model is larger."""

STUDY = replace(
    lstm_epochs.STUDY,
    name="lstm-width",
    title="Perplexity on the Penn Treebank at a width of 650, after four epochs (Table results_lstm)",
    settings={
        **lstm_epochs.STUDY.settings,
        "width": 650,
        "schedule": {"1.0": [4, 2, 0.2]},
        "runs": 1,
        "tries": {method: [best] for method, best in BEST.items()},
        "restarted": BEST,
    },
)
