"""A BERT of a few thousand parameters with its tokenizer, and a data folder with a few made-up rows for it."""

import random

import pytest

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = [f"w{i}" for i in range(15)]

SETTINGS = {
    "model": "tiny",
    "rows": {"CoLA": 8, "RTE": 8},
    "judged": 6,
    "length": 10,
    "epochs": 2,
    "batch_size": 4,
    "learning_rate": 0.01,
    "positions": 2,
    "n_contexts": 2,
    "ngram_lines": 20,
    "head": {
        "steps": 4,
        "batch_size": 4,
        "length": 8,
        "masked": 0.3,
        "learning_rate": 0.01,
        "seed": 0,
        "encoder_rate": 1e-3,
        "save_steps": 2,
    },
    "runs": 1,
}


def use(monkeypatch, folder):
    """Makes this model and these data those of the study."""
    pytest.importorskip("transformers")
    from imm.experiments.glue import runs as glue
    from imm.experiments.glue import wikipedia as glue_words

    model(folder / "model")
    data(folder / "data")
    monkeypatch.setenv("IMM_DATA", str(folder / "data"))
    for module in (glue, glue_words):
        monkeypatch.setattr(module, "model_folder", lambda name: str(folder / "model"))
    glue.tokenised.cache_clear()
    glue.bigram.cache_clear()


def model(folder):
    """Without a head for masked words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate((*SPECIAL, *WORDS))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL, strict=True))
    columns = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(
        tokenizer_object=made, model_input_names=columns, **{f"{name}_token": word for name, word in names.items()}
    ).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=20, max_position_embeddings=16, pad_token_id=0, **size)).save_pretrained(folder)


def data(folder):
    draw = random.Random(0)

    def text(longest=5):
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(2, longest)))

    for task in ("CoLA", "RTE"):
        (folder / "glue" / task).mkdir(parents=True)
    for split in ("train", "dev"):
        rows = [f"x\t{i % 2}\t\t{text()}" for i in range(12)]
        (folder / "glue" / "CoLA" / f"{split}.tsv").write_text("\n".join(rows) + "\n")
        answers = ("entailment", "not_entailment")
        rows = [f"{i}\t{text()}\t{text()}\t{answers[i % 2]}" for i in range(12)]
        (folder / "glue" / "RTE" / f"{split}.tsv").write_text("\n".join(["index\ta\tb\tlabel", *rows]) + "\n")
    (folder / "wikitext-2").mkdir()
    (folder / "wikitext-2" / "train.txt").write_text("".join(f" {text(9)} \n" for _ in range(30)))
