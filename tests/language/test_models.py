"""The full model: its predictions, its state, and how it is kept."""

import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from imm.language import Vocabulary, load_model, save_model
from tests.language import tiny


def read(model, tokens, lengths):
    """Predictions of a text ``[n, batch]`` read in windows of these lengths, ``[n, batch, words]``."""
    state, found = model.initial_state(tokens.shape[1]), []
    for part in tokens.split(lengths):
        log_q, state = model(part, state)
        found.append(log_q.view(*part.shape, -1))
    return torch.cat(found)


class TestModel:
    def test_predictions_are_normalised_log_probabilities(self):
        model = tiny.model()
        tokens = tiny.tokens(16).view(4, 4)
        for mode in (True, False):
            log_q, _ = model.train(mode)(tokens, model.initial_state(4))
            assert log_q.shape == (16, len(tiny.WORDS))
            torch.testing.assert_close(log_q.exp().sum(-1), torch.ones(16))

    def test_rows_are_window_major(self):
        """Row ``place * batch + column``: what the labels' order is."""
        model = tiny.model()
        tokens = tiny.tokens(12).view(4, 3)
        together = model(tokens, model.initial_state(3))[0].view(4, 3, -1)
        for column in range(3):
            alone, _ = model(tokens[:, column : column + 1], model.initial_state(1))
            torch.testing.assert_close(together[:, column], alone)

    def test_a_later_word_does_not_change_an_earlier_prediction(self):
        model = tiny.model()
        tokens = tiny.tokens(8)[:, None]
        before = read(model, tokens, [4, 4])
        for place in range(8):
            other = tokens.clone()
            other[place] = (other[place] + 1) % len(tiny.WORDS)
            changed = (read(model, other, [4, 4]) != before).any(-1)[:, 0]
            assert not changed[:place].any()
            assert changed[place:].all(), "and each word that is in sight counts"

    def test_the_state_has_no_history_of_differentiation(self):
        model = tiny.model()
        _, state = model(tiny.tokens(4)[:, None], model.initial_state(1))
        assert not any(part.requires_grad for part in state)
        assert [part.shape for part in state] == [part.shape for part in model.initial_state(1)]

    def test_tied_weights_are_one(self):
        model = tiny.model(tied=True)
        assert model.output.weight is model.embedding.weight
        n = sum(p.numel() for p in tiny.model().parameters())
        assert n - sum(p.numel() for p in model.parameters()) == model.embedding.weight.numel()

    @pytest.mark.parametrize("tied", [False, True])
    def test_it_comes_back_from_a_folder(self, tied, tmp_path):
        model, vocabulary = tiny.model(tied=tied), Vocabulary([*tiny.WORDS[:-1], "größe"], level="char")
        settings = tiny.settings(tied=tied, init=0.8)
        save_model(model, vocabulary, settings, tmp_path / "model")
        again, words, same = load_model(tmp_path / "model")
        assert (words.words, words.level, same) == (vocabulary.words, "char", settings)
        assert not again.training
        assert (again.output.weight is again.embedding.weight) == tied
        tokens = tiny.tokens(8)[:, None]
        assert torch.equal(read(again, tokens, [4, 4]), read(model, tokens, [4, 4]))
        assert {path.name for path in (tmp_path / "model").iterdir()} == {"model.json", "model.safetensors"}

    def test_saving_again_replaces_and_a_foreign_folder_is_refused(self, tmp_path):
        vocabulary, settings = Vocabulary(tiny.WORDS), tiny.settings()
        for seed in (0, 1):
            save_model(tiny.model(seed), vocabulary, settings, tmp_path / "model")
        again, _, _ = load_model(tmp_path / "model")
        assert torch.equal(again.output.weight, tiny.model(1).output.weight)
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.tex").touch()
        with pytest.raises(FileExistsError, match=r"holds no model\.json"):
            save_model(again, vocabulary, settings, tmp_path / "mine")


@pytest.mark.parametrize("lengths", [[12], [1] * 12, [5, 4, 3], [2, 10]])
def test_an_lstm_reads_windows_of_any_length_as_one(lengths):
    model = tiny.model()
    tokens = tiny.tokens(36).view(12, 3)
    torch.testing.assert_close(read(model, tokens, lengths), read(model, tokens, [12]))


def test_dropout_is_on_in_training_alone():
    model = tiny.model()
    tokens = tiny.tokens(4)[:, None]
    assert torch.equal(read(model, tokens, [4]), read(model, tokens, [4]))
    model.train()
    assert not torch.equal(read(model, tokens, [4]), read(model, tokens, [4]))


def test_an_lstms_first_parameters():
    """Uniform in ± init; biases zero, but one for the forget gate."""
    torch.manual_seed(0)
    model = tiny.build(len(tiny.WORDS), tiny.settings(init=0.01))
    for name, parameter in model.named_parameters():
        if "bias" in name:
            expected = torch.zeros_like(parameter)
            if "bias_ih" in name:
                expected[8:16] = 1  # input, forget, cell, output
            assert torch.equal(parameter, expected), name
        else:
            assert 0.005 < parameter.abs().max() <= 0.01, name


class TestDamage:
    @pytest.fixture
    def folder(self, tmp_path):
        save_model(tiny.model(), Vocabulary(tiny.WORDS), tiny.settings(), tmp_path / "model")
        return tmp_path / "model"

    @pytest.mark.parametrize(
        "change",
        [
            lambda about: [],
            lambda about: None,
            lambda about: {},
            lambda about: about | {"settings": "small"},
            lambda about: about | {"settings": about["settings"] | {"width": 9}},
            lambda about: about | {"settings": about["settings"] | {"width": "wide"}},
            lambda about: about | {"settings": about["settings"] | {"width": 1 << 60}},
            lambda about: about | {"settings": about["settings"] | {"import": "os"}},
            lambda about: about | {"words": "abcdefg"},
            lambda about: about | {"words": about["words"][:-1]},
            lambda about: about | {"words": [*about["words"][:-1], 7]},
            lambda about: about | {"level": "byte"},
        ],
    )
    def test_another_description_is_refused_in_one_line(self, folder, change):
        path = folder / "model.json"
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
        self.refuses(folder)

    @pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"\x80" * 100, pickle.dumps({"a": 1})])
    def test_another_file_is_refused_in_one_line(self, folder, name, content):
        (folder / name).write_bytes(content)
        self.refuses(folder)

    def test_half_a_file_is_refused_in_one_line(self, folder):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-50])
        self.refuses(folder)

    def test_other_parameters_are_refused_in_one_line(self, folder):
        path = folder / "model.safetensors"
        parameters = load_file(path)
        del parameters["output.bias"]
        save_file(parameters, path)
        self.refuses(folder)

    def test_a_lacking_file_is_named(self, folder):
        (folder / "model.safetensors").unlink()
        with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
            load_model(folder)
        (folder / "model.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"holds no language model: there is no model\.json"):
            load_model(folder)

    def test_nothing_is_unpickled(self, folder, monkeypatch):
        ran = []
        monkeypatch.setattr(tiny, "ran", ran.append, raising=False)
        (folder / "model.safetensors").write_bytes(pickle.dumps(_Bomb()))
        self.refuses(folder)
        assert not ran

    def refuses(self, folder):
        with pytest.raises(ValueError, match=r"is not a whole language model: .") as refused:
            load_model(folder)
        assert "\n" not in str(refused.value)
        assert str(folder) in str(refused.value)


class _Bomb:
    def __reduce__(self):
        return tiny.ran, ("boom",)
