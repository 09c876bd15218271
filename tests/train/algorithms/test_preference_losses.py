"""Losses of the preference recipes, as TRL computes them, against the papers' formulas in numpy.

The model is a table: the next token depends on the present one only, so that the reference needs
nothing but the table to find every log-probability itself.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]

VOCABULARY = 11
PROMPT = [3, 5]
#: Of unequal lengths, so that sums and means over tokens differ.
CHOSEN, REJECTED = [[1, 2, 7], [4, 9, 6, 8]], [[2, 8], [10, 1, 1]]
BETA = 0.3


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_softmax(table: np.ndarray) -> np.ndarray:
    return table - np.log(np.exp(table).sum(-1, keepdims=True))


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Logits of the policy and of the reference."""
    generator = np.random.default_rng(0)
    return tuple(generator.normal(size=(VOCABULARY, VOCABULARY)) for _ in range(2))  # type: ignore[return-value]


def token_log_probabilities(table: np.ndarray, answer: list[int]) -> np.ndarray:
    present = [PROMPT[-1], *answer[:-1]]
    return log_softmax(table)[present, answer]


def sums(table: np.ndarray, answers: list[list[int]]) -> np.ndarray:
    return np.array([token_log_probabilities(table, answer).sum() for answer in answers])


def means(table: np.ndarray, answers: list[list[int]]) -> np.ndarray:
    return np.array([token_log_probabilities(table, answer).mean() for answer in answers])


class Table(torch.nn.Module):
    """Looks the next token's logits up."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor(table, dtype=torch.float32))
        self.config = SimpleNamespace(output_router_logits=False)

    def forward(self, input_ids: Any, **_: Any) -> Any:
        return SimpleNamespace(logits=self.logits[input_ids])


def bare(trainer_class: type[Any], tables: tuple[np.ndarray, np.ndarray], **fields: Any) -> Any:
    """A trainer with nothing but what its loss reads."""
    from collections import defaultdict

    trainer = object.__new__(trainer_class)
    alone = SimpleNamespace(
        device=torch.device("cpu"),
        gather=lambda x: x,
        gather_for_metrics=lambda x: x,
        unwrap_model=lambda x: x,
    )
    common = {
        "model": Table(tables[0]),
        "ref_model": Table(tables[1]),
        "accelerator": alone,
        "args": SimpleNamespace(gradient_checkpointing_kwargs=None, center_rewards_coefficient=None),
        "beta": BETA,
        "aux_loss_enabled": False,
        "use_liger_kernel": False,
        "_metrics": {"train": defaultdict(list), "eval": defaultdict(list)},
        "_total_train_tokens": 0,
    }
    for name, value in {**common, **fields}.items():
        object.__setattr__(trainer, name, value)
    trainer.model.is_gradient_checkpointing = False
    return trainer


def padded(answers: list[list[int]]) -> dict[str, Any]:
    rows = [PROMPT + answer for answer in answers]
    width = max(map(len, rows))
    fill = [width - len(row) for row in rows]
    return {
        "input_ids": torch.tensor([row + [0] * n for row, n in zip(rows, fill, strict=True)]),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * n for row, n in zip(rows, fill, strict=True)]),
        "completion_mask": torch.tensor(
            [
                [0] * len(PROMPT) + [1] * (len(row) - len(PROMPT)) + [0] * n
                for row, n in zip(rows, fill, strict=True)
            ]
        ),
    }


# -- DPO -----------------------------------------------------------------------------------


def dpo_reference(tables: tuple[np.ndarray, np.ndarray], loss: str, smoothing: float) -> float:
    policy, reference = tables
    chosen = sums(policy, CHOSEN) - sums(reference, CHOSEN)
    rejected = sums(policy, REJECTED) - sums(reference, REJECTED)
    margin = BETA * (chosen - rejected)
    if loss == "sigmoid":  # DPO, equation 7
        return float(-np.log(sigmoid(margin)).mean())
    if loss == "hinge":  # SLiC, as in RSO, equation 10
        return float(np.maximum(0, 1 - margin).mean())
    if loss == "robust":  # robust DPO, equation 9
        right, wrong = -np.log(sigmoid(margin)), -np.log(sigmoid(-margin))
        return float((((1 - smoothing) * right - smoothing * wrong) / (1 - 2 * smoothing)).mean())
    # IPO, equation 17, of means over tokens as its authors mean it.
    lengths = [np.array([len(each) for each in answers]) for answers in (CHOSEN, REJECTED)]
    return float(((chosen / lengths[0] - rejected / lengths[1] - 1 / (2 * BETA)) ** 2).mean())


@pytest.mark.parametrize(
    ("loss", "smoothing"),
    [("sigmoid", 0.0), ("hinge", 0.0), ("ipo", 0.0), ("robust", 0.2), ("robust", 0.0)],
)
def test_dpo(tables: tuple[np.ndarray, np.ndarray], loss: str, smoothing: float) -> None:
    from trl import DPOTrainer

    trainer = bare(
        DPOTrainer,
        tables,
        loss_types=[loss],
        loss_weights=[1.0],
        ld_alpha=None,
        f_divergence_type="reverse_kl",
        label_smoothing=smoothing,
        precompute_ref_logps=False,
        use_weighting=False,
    )

    computed = trainer._compute_loss(trainer.model, padded(CHOSEN + REJECTED), False)

    assert computed.item() == pytest.approx(dpo_reference(tables, loss, smoothing), rel=1e-5)


def test_robust_dpo_without_wrong_labels_is_dpo(tables: tuple[np.ndarray, np.ndarray]) -> None:
    assert dpo_reference(tables, "robust", 0.0) == pytest.approx(dpo_reference(tables, "sigmoid", 0.0))


# -- KTO -----------------------------------------------------------------------------------


def test_kto(tables: tuple[np.ndarray, np.ndarray]) -> None:
    from trl import KTOTrainer

    weights = {"desirable_weight": 1.3, "undesirable_weight": 0.7}
    answers, labels = CHOSEN + REJECTED, [True, True, False, False]
    mismatched = [answers[-1], *answers[:-1]]
    trainer = bare(
        KTOTrainer, tables, loss_type="kto", calculate_KL=True, precompute_ref_logps=False, **weights
    )
    others = {f"KL_{name}": value for name, value in padded(mismatched).items()}

    computed = trainer._compute_loss(
        trainer.model, {**padded(answers), **others, "label": torch.tensor(labels)}, False
    )

    # KTO, equations 7 and 8; the divergence is that of answers to other prompts.
    policy, reference = tables
    gain = sums(policy, answers) - sums(reference, answers)
    divergence = max(0.0, float((sums(policy, mismatched) - sums(reference, mismatched)).mean()))
    good = weights["desirable_weight"] * (1 - sigmoid(BETA * (gain[:2] - divergence)))
    bad = weights["undesirable_weight"] * (1 - sigmoid(BETA * (divergence - gain[2:])))
    assert computed.item() == pytest.approx(float(np.concatenate([good, bad]).mean()), rel=1e-5)


# -- without a reference -------------------------------------------------------------------


def concatenated(answers: list[list[int]], side: str) -> dict[str, Any]:
    batch = padded(answers)
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    return {
        f"{side}_input_ids": batch["input_ids"],
        f"{side}_attention_mask": batch["attention_mask"],
        f"{side}_labels": labels,
    }


PAIRS = {**concatenated(CHOSEN, "chosen"), **concatenated(REJECTED, "rejected")}


def test_orpo(tables: tuple[np.ndarray, np.ndarray]) -> None:
    from trl.experimental.orpo import ORPOTrainer

    trainer = bare(ORPOTrainer, tables, is_encoder_decoder=False, padding_value=0)

    computed, _ = trainer.get_batch_loss_metrics(trainer.model, PAIRS)

    # ORPO, equations 3 to 7: the supervised loss covers the prompt too, as its authors' code does.
    chosen, rejected = np.exp(means(tables[0], CHOSEN)), np.exp(means(tables[0], REJECTED))
    odds_ratio = np.log(chosen / (1 - chosen)) - np.log(rejected / (1 - rejected))
    rows = [PROMPT + answer for answer in CHOSEN]
    supervised = -np.concatenate([log_softmax(tables[0])[row[:-1], row[1:]] for row in rows]).mean()
    expected = supervised - BETA * np.log(sigmoid(odds_ratio)).mean()
    assert computed.item() == pytest.approx(float(expected), rel=1e-5)


def cpo_trainer(tables: tuple[np.ndarray, np.ndarray], **settings: Any) -> Any:
    """TRL's trainer of SimPO and CPO."""
    from trl.experimental.cpo import CPOTrainer

    return bare(CPOTrainer, tables, alpha=0.0, is_encoder_decoder=False, pad_token_id=0, **settings)


@pytest.mark.parametrize(("alpha", "smoothing"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.1)])
def test_simpo(tables: tuple[np.ndarray, np.ndarray], alpha: float, smoothing: float) -> None:
    gamma = 0.4
    trainer = cpo_trainer(
        tables, loss_type="simpo", simpo_gamma=gamma, cpo_alpha=alpha, label_smoothing=smoothing
    )

    computed, _ = trainer.get_batch_loss_metrics(trainer.model, PAIRS)

    # SimPO, equation 6; with a supervised part it is CPO-SimPO.
    margin = BETA * (means(tables[0], CHOSEN) - means(tables[0], REJECTED)) - gamma
    preferred = -(1 - smoothing) * np.log(sigmoid(margin)) - smoothing * np.log(sigmoid(-margin))
    tokens = np.concatenate([token_log_probabilities(tables[0], answer) for answer in CHOSEN])
    expected = preferred.mean() - alpha * tokens.mean()
    assert computed.item() == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "alpha", "smoothing"),
    [("sigmoid", 1.0, 0.0), ("sigmoid", 0.0, 0.1), ("hinge", 1.0, 0.0), ("hinge", 0.0, 0.0)],
)
def test_cpo(tables: tuple[np.ndarray, np.ndarray], loss: str, alpha: float, smoothing: float) -> None:
    trainer = cpo_trainer(tables, loss_type=loss, cpo_alpha=alpha, label_smoothing=smoothing)

    computed, _ = trainer.get_batch_loss_metrics(trainer.model, PAIRS)

    # CPO, equation 3, of sums over tokens; the hinge is SLiC's. The supervised part is a mean over tokens.
    margin = BETA * (sums(tables[0], CHOSEN) - sums(tables[0], REJECTED))
    preferred = -(1 - smoothing) * np.log(sigmoid(margin)) - smoothing * np.log(sigmoid(-margin))
    if loss == "hinge":
        preferred = np.maximum(0, 1 - margin)
    tokens = np.concatenate([token_log_probabilities(tables[0], answer) for answer in CHOSEN])
    assert computed.item() == pytest.approx(float(preferred.mean() - alpha * tokens.mean()), rel=1e-5)


# -- reward model --------------------------------------------------------------------------


@pytest.mark.parametrize("centring", [None, 0.01])
def test_reward_model(centring: float | None) -> None:
    from trl import RewardTrainer

    rewards = np.array([1.5, -0.2, 0.4, 0.3])  # two chosen, then two rejected
    score: Callable[..., Any] = lambda **_: SimpleNamespace(logits=torch.tensor(rewards).unsqueeze(-1))  # noqa: E731
    trainer = bare(
        RewardTrainer,
        (np.zeros((1, 1)), np.zeros((1, 1))),
        args=SimpleNamespace(center_rewards_coefficient=centring),
    )

    computed = trainer.compute_loss(score, padded(CHOSEN + REJECTED))

    # Bradley–Terry, InstructGPT's equation 1; the centring of equation 2 of arXiv 2312.09244.
    expected = -np.log(sigmoid(rewards[:2] - rewards[2:])).mean()
    expected += (centring or 0.0) * ((rewards[:2] + rewards[2:]) ** 2).mean()
    assert computed.item() == pytest.approx(float(expected), rel=1e-6)
