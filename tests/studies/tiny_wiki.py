"""A data folder with a little made-up text in place of WikiText-2."""

import random

import pytest

SETTINGS = {
    "tokens": 280,
    "context": 8,
    "width": 8,
    "layers": 1,
    "heads": 2,
    "batch_size": 4,
    "judged": 40,
    "epochs": {"0.1": 2},
    "strengths": {"none": [0.0], "reverse-kd": [0.3], "imm-streaming": [0.5]},
    "shares": [0.5],
}


def use(monkeypatch, folder):
    """Makes this text that of the study."""
    pytest.importorskip("transformers")
    from studies.little_text import runs as low_data

    draw = random.Random(0)
    (folder / "wikitext-2").mkdir(parents=True)
    for split, n_lines in (("train", 60), ("valid", 12), ("test", 12)):
        words = [[draw.choice(("the", "cat", "sat", "<unk>", "mats")) for _ in range(8)] for _ in range(n_lines)]
        (folder / "wikitext-2" / f"{split}.txt").write_text("".join(f" {' '.join(line)} \n" for line in words))
    monkeypatch.setenv("IMM_DATA", str(folder))
    low_data.words.cache_clear()
