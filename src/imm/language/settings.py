"""Everything that decides a training run, and the presets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from imm.validation import check_count, check_fraction, check_not_negative

PRECISIONS = ("32", "bf16")
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
    "gamma": (*_NOISED, "imm-sampled"),
    "falls": _NOISED + _MATCHED,
    "n_contexts": ("imm-sampled",),
    "every": ("imm-sampled",),
    "refresh_every": ("imm-serialized",),
    "memory": ("imm-streaming",),
    "lifetime": ("imm-streaming",),
    "table_mb": ("imm-exact", "imm-sampled", "imm-serialized", "imm-streaming"),
}
"""Of settings that only some methods have: which."""

VERSIONS = {"imm-exact": 2, "imm-sampled": 2}
"""A method's version is raised when its mathematics changes, so that a run of an older one is not taken for it."""


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
        width: of embedding and layers.
        layers: how many.
        dropout: on the embedding, between layers and before the output.
        tied: whether embedding and output share their weights.
        init: parameters are uniform in ± this.
        batch_size: how many streams the text is cut into.
        unroll: L, the steps of truncated back-propagation.
        precision: ``bf16`` computes the output layer in bfloat16 while training, which is faster where the processor
            has instructions for it; perplexities are always computed in single precision.
        learning_rate: of SGD, at the beginning.
        decay: the factor that reduces the learning rate.
        decay_after: from this epoch on the learning rate is reduced after each. With 0 it is reduced when the
            validation perplexity does not fall, and the best parameters come back.
        max_decays: training ends with the next one after as many (if ``decay_after`` is 0).
        epochs: at most.
        clip: the norm at which a gradient is clipped. IMM's own pass (sampled, exact) is clipped to it too, before it
            is multiplied by λ.
        method: one of ``METHODS``.
        lam: λ of reverse KD and of IMM.
        gamma: how much noise or smoothing; γ0 of Kneser-Ney noising, and of sampled IMM on the batches between.
        falls: whether λ or γ falls from there, linearly to zero over the epochs.
        n_contexts: k, how many extended contexts each different word of a batch has (sampled).
        every: j, from one batch with extended contexts to the next (sampled).
        refresh_every: r in steps (serialized); 0 for once an epoch.
        memory: K in predictions (streaming).
        lifetime: τ in batches (streaming).
        table_mb: the most memory that a table of induced models may take (serialized, streaming), or the states
            before the words of the text (exact, sampled).
        seed: of initial parameters, dropout, noise and draws.
    """

    width: int = 200
    layers: int = 2
    dropout: float = 0.4
    tied: bool = False
    init: float = 0.1
    batch_size: int = 20
    unroll: int = 35
    precision: str = "32"
    learning_rate: float = 1.0
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
    refresh_every: int = 0
    memory: float = 1000.0
    lifetime: float = 30.0
    table_mb: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        for name, given, known in (
            ("precision", self.precision, PRECISIONS),
            ("method", self.method, METHODS),
        ):
            if given not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {given!r}")
        for name in ("width", "layers", "batch_size", "unroll", "epochs", "n_contexts", "every", "table_mb"):
            check_count(getattr(self, name), name)
        for name in ("decay_after", "max_decays", "refresh_every", "seed"):
            check_count(getattr(self, name), name, 0)
        for name in ("init", "learning_rate", "lam", "memory", "lifetime"):
            check_not_negative(getattr(self, name), name)
        for name in ("decay", "gamma"):
            check_fraction(getattr(self, name), name)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")
        if not self.seed < 2**63:
            raise ValueError(f"seed must be below 2**63, got {self.seed!r}")
        if not self.clip > 0:
            raise ValueError(f"clip must be above 0, got {self.clip!r}")

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Returns the settings of a preset, with some of them changed."""
        if name not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
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
}

PRESETS: Mapping[str, Mapping[str, Any]] = {"small": {}, "paper": _PAPER}
