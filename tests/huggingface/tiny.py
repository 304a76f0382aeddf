"""Models of a few thousand parameters with random weights, a tokenizer of twenty words, and texts for them."""

from functools import cache

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    default_data_collator,
)

from imm.huggingface import IMMConfig, IMMTrainer, TaskWithMaskedLM, fit_token_ngram

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (*SPECIAL, *(f"w{i}" for i in range(15)))


@cache
def tokenizer(masked=False):
    """Words as they are; with ``[CLS]`` and ``[SEP]`` around a text for masked models."""
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[SEP]"}
    if masked:
        made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


@cache
def texts(n=12, seed=0):
    """Sentences of different lengths in which words depend on the one before."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.softmax(2 * torch.randn(15, 15, generator=torch.Generator().manual_seed(0)), -1)
    out = []
    for _ in range(n):
        words = [int(torch.randint(15, (1,), generator=generator))]
        for _ in range(int(torch.randint(2, 7, (1,), generator=generator))):
            words.append(int(torch.multinomial(table[words[-1]], 1, generator=generator)))
        out.append(" ".join(f"w{word}" for word in words))
    return out


def rows(n=12, seed=0, masked=False):
    return [{"input_ids": ids} for ids in tokenizer(masked)(texts(n, seed))["input_ids"]]


def masked_rows(n):
    """One masked word in each, so that the mean of several batches' means is that of all words."""
    words = [([2, 5 + i % 12, 4, 6 + i % 11, 3], 7 + i % 10) for i in range(n)]
    rest = {"attention_mask": [1] * 5}
    return [{"input_ids": ids, "labels": [-100, -100, word, -100, -100], **rest} for ids, word in words]


def bigram(masked=False, order=2):
    return fit_token_ngram((row["input_ids"] for row in rows(60, 5, masked)), tokenizer(masked), order)


def gpt2(seed=0, dropout=0.0, n_words=20):
    torch.manual_seed(seed)
    size = {"n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 3, "eos_token_id": 3}
    drop = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    return louder(GPT2LMHeadModel(GPT2Config(vocab_size=n_words, pad_token_id=0, **size, **drop)))


def llama(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    size = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    end = {"bos_token_id": 3, "eos_token_id": 3, "pad_token_id": 0}
    config = LlamaConfig(vocab_size=len(WORDS), max_position_embeddings=16, attention_dropout=dropout, **size, **end)
    return louder(LlamaForCausalLM(config))


def bert_config(dropout=0.0):
    size = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    drop = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, pad_token_id=0, **size, **drop)


def bert(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return louder(BertForMaskedLM(bert_config(dropout)))


def classifier(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return louder(BertForSequenceClassification(bert_config(dropout)))


def task_with_words(seed=0, dropout=0.0):
    return TaskWithMaskedLM(classifier(seed, dropout), bert(seed + 1, dropout))


def louder(model):
    """Predictions that differ a lot: transformers begin with nearly uniform ones."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(10)
    return model


def collator(masked=False):
    return DataCollatorForLanguageModeling(tokenizer(masked), mlm=masked)


def config(folder, **changes):
    few = {"max_steps": 3, "per_device_train_batch_size": 4, "learning_rate": 0.01, "logging_steps": 1}
    quiet = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}
    return IMMConfig(**({"output_dir": str(folder), "dataloader_pin_memory": False} | few | quiet | changes))


def trainer(folder, model=None, kind=IMMTrainer, dataset=None, target=None, compute_loss_func=None, **changes):
    """For a causal model; ``kind`` may be the plain trainer, which is given the same settings."""
    more = {"target": target or bigram()} if kind is IMMTrainer else {}
    return kind(
        model=model or gpt2(),
        args=config(folder, **changes),
        train_dataset=dataset or rows(),
        data_collator=collator(),
        processing_class=tokenizer(),
        compute_loss_func=compute_loss_func,
        **more,
    )


def masked_trainer(folder, dataset, **changes):
    """For BERT, with the words masked already."""
    return IMMTrainer(
        model=bert(),
        args=config(folder, **changes),
        train_dataset=dataset,
        data_collator=default_data_collator,
        processing_class=tokenizer(masked=True),
        target=bigram(masked=True),
    )


def trained(made):
    """The parameters after training, as one tensor."""
    made.train()
    return parameters(made.model)


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])
