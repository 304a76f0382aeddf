"""Everything that decides a training run, and the presets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from imm.validation import check_count, check_fraction, check_not_negative

MODELS = ("lstm", "transformer")
OPTIMIZERS = ("sgd", "adamw")
METHODS = (
    "none",
    "kn-noising",
    "unigram-noising",
    "soft-noising",
    "label-smoothing",
    "reverse-kd",
    "interpolation",
    "imm-exact",
    "imm-sampled",
    "imm-serialized",
    "imm-streaming",
)

_MATCHED = ("reverse-kd", "imm-exact", "imm-sampled", "imm-serialized", "imm-streaming")
_NOISED = ("kn-noising", "unigram-noising", "soft-noising", "label-smoothing")
METHODS_OF = {
    "lam": _MATCHED,
    "gamma": _NOISED,
    "falls": _NOISED + _MATCHED,
    "start_below": _MATCHED,
    "n_contexts": ("imm-sampled",),
    "every": ("imm-sampled",),
    "positions": ("imm-sampled",),
    "refresh_every": ("imm-serialized",),
    "memory": ("imm-streaming",),
    "lifetime": ("imm-streaming",),
    "table_mb": ("imm-exact", "imm-sampled", "imm-serialized", "imm-streaming"),
}
"""Of settings that only some methods have: which."""


def without_effect(
    method: str, names: Iterable[str], methods_of: Mapping[str, Sequence[str]] = METHODS_OF
) -> list[str]:
    """Which of these settings the method does not have."""
    return [name for name in names if method not in methods_of.get(name, METHODS)]


@dataclass(frozen=True)
class Settings:
    """The settings of one run; the defaults are those of the preset ``small``.

    The loss is summed over the unroll and averaged over the batch, as in the code the paper builds on: learning rates
    and clipping norms are meant for that.

    Attributes:
        model: ``lstm`` or ``transformer``.
        width: of embedding and layers.
        layers: how many.
        heads: of the transformer's attention.
        dropout: on the embedding, between layers and before the output.
        tied: whether embedding and output share their weights.
        init: parameters are uniform in ± this.
        batch_size: how many streams the text is cut into.
        unroll: L, the steps of truncated back-propagation.
        optimizer: ``sgd``, or ``adamw``, whose learning rate falls linearly to zero over the epochs.
        learning_rate: at the beginning.
        weight_decay: AdamW's.
        decay: the factor that reduces the learning rate (SGD).
        decay_after: from this epoch on the learning rate is reduced after each (SGD). With 0 it is reduced when the
            validation perplexity does not fall, and the best parameters come back.
        max_decays: training ends with the next one after as many (SGD, if ``decay_after`` is 0).
        epochs: at most.
        clip: the norm at which a gradient is clipped.
        method: one of ``METHODS``.
        lam: λ of reverse KD and of IMM.
        gamma: how much noise or smoothing; γ0 of Kneser-Ney noising.
        falls: whether λ or γ falls from there, linearly to zero over the epochs.
        n_contexts: k (sampled).
        every: j; on the other batches one sample is taken, which is the batch's own context (sampled).
        positions: m, how many of the batch's short contexts are matched on a j-th batch (sampled); 0 for all.
        refresh_every: r in steps (serialized); 0 for once an epoch.
        memory: K in predictions (streaming).
        lifetime: τ in batches (streaming).
        table_mb: the most memory that a table of induced models may take (serialized, streaming), or the states of all
            windows (exact, sampled).
        start_below: IMM and reverse KD begin when the validation perplexity is below; 0 for at once.
        clip_apart: whether IMM's gradient is clipped too: that of a second pass apart, any other with the
            cross-entropy's. Otherwise only the cross-entropy's is.
        match_embedding: whether the gradient of a second pass reaches the embedding (sampled, exact).
        embedding_factor: the embedding's gradient of the cross-entropy is multiplied by it while IMM is on; IMM's is
            then clipped apart, whatever pass it is of.
        restart_rate: the learning rate from when IMM begins (SGD); 0 to leave it.
        seed: of initial parameters, dropout, noise and draws.
    """

    model: str = "lstm"
    width: int = 200
    layers: int = 2
    heads: int = 4
    dropout: float = 0.4
    tied: bool = False
    init: float = 0.1
    batch_size: int = 20
    unroll: int = 35
    optimizer: str = "sgd"
    learning_rate: float = 1.0
    weight_decay: float = 0.0
    decay: float = 0.5
    decay_after: int = 6
    max_decays: int = 20
    epochs: int = 12
    clip: float = 5.0
    method: str = "none"
    lam: float = 1.0
    gamma: float = 0.2
    falls: bool = False
    n_contexts: int = 10
    every: int = 5
    positions: int = 32
    refresh_every: int = 0
    memory: float = 1000.0
    lifetime: float = 30.0
    table_mb: int = 1024
    start_below: float = 0.0
    clip_apart: bool = True
    match_embedding: bool = True
    embedding_factor: float = 1.0
    restart_rate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, given, known in (
            ("model", self.model, MODELS),
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("method", self.method, METHODS),
        ):
            if given not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {given!r}")
        for name in ("width", "layers", "heads", "batch_size", "unroll", "epochs", "n_contexts", "every", "table_mb"):
            check_count(getattr(self, name), name)
        for name in ("decay_after", "max_decays", "positions", "refresh_every", "seed"):
            check_count(getattr(self, name), name, 0)
        rates = ("learning_rate", "weight_decay", "restart_rate")
        for name in ("init", *rates, "lam", "memory", "lifetime", "start_below", "embedding_factor"):
            check_not_negative(getattr(self, name), name)
        for name in ("decay", "gamma"):
            check_fraction(getattr(self, name), name)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")
        if not self.seed < 2**63:
            raise ValueError(f"seed must be below 2**63, got {self.seed!r}")
        if not self.clip > 0:
            raise ValueError(f"clip must be above 0, got {self.clip!r}")
        if self.model == "transformer" and self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, got {self.width} and {self.heads}")
        if self.tied and not self.match_embedding:
            raise ValueError(
                "match_embedding must be True where tied is: what keeps IMM from the embedding, as the preset"
                " authors-code does, would keep it from the output too"
            )

    @property
    def matches(self) -> bool:
        """Whether the method has a λ: IMM and reverse KD, which may begin later than training does."""
        return self.method in _MATCHED

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The settings of a preset, with some of them changed; a transformer has AdamW, and that its own rate.

        Unless told: the presets' own, SGD at a rate of 1, is an LSTM's.
        """
        if name not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
        if changes.get("model") == "transformer":
            changes = {"optimizer": "adamw", **changes}
        if changes.get("optimizer") == "adamw":
            changes = {"learning_rate": ADAMW_RATE, **changes}
        return replace(cls(**PRESETS[name]), **changes)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """From what :meth:`to_json` gave; anything else is refused."""
        if not isinstance(given, Mapping):
            raise ValueError(f"settings must be a record, got {given!r}")
        known = {field.name for field in fields(cls)}
        if given.keys() != known:
            some = ", ".join(sorted(known ^ given.keys(), key=str)[:3])
            raise ValueError(f"these are not the settings of a language model: {some} … missing or not known")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """As a flat record."""
        return asdict(self)


_PAPER: Mapping[str, Any] = {
    # "We use the model with latent dimension 1500", Xie's topology: two layers.
    "width": 1500,
    "layers": 2,
    # The repository's README: "a dropout probability 0.65".
    "dropout": 0.65,
    "init": 0.1,
    "batch_size": 20,
    # "L = 35 unroll positions are used"
    "unroll": 35,
    "optimizer": "sgd",
    "learning_rate": 1.0,
    "decay": 0.5,
    "decay_after": 0,
    "max_decays": 20,
    "epochs": 400,
    "clip": 5.0,
    "method": "imm-sampled",
    # "the value of 0.2 to work well in most cases"
    "lam": 0.2,
    # "we settled for k = 10 (and j = 5)"
    "n_contexts": 10,
    "every": 5,
    "positions": 0,
}

ADAMW_RATE = 0.003

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "small": {},
    "paper": _PAPER,
    # What the published code does and the paper does not say.
    "authors-code": {
        **_PAPER,
        "start_below": 90.0,
        "restart_rate": 0.5,
        "clip_apart": False,
        "match_embedding": False,
        "embedding_factor": 2.0,
    },
}
