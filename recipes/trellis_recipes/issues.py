"""What is wrong with a request, or worth a warning: said with the field and the nearest valid name."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

from trellis_contracts.recipe import Strict

#: What Hugging Face's trainers and papers call a setting, and verl's name for it.
_OTHER_NAMES = {
    "learning_rate": "lr",
    "max_grad_norm": "clip_grad",
    "warmup_ratio": "lr_warmup_steps_ratio",
    "warmup_steps": "lr_warmup_steps",
    "num_generations": "n",
    "num_train_epochs": "total_epochs",
    "max_steps": "total_training_steps",
    "beta": "kl_loss_coef",
    "epsilon": "clip_ratio",
}


class Issue(Strict):
    """One error or warning; ``field`` is a path into the request (``params.group_size``)."""

    code: str
    field: str
    message: str
    suggestion: str | None = None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to the given one, or None if none is similar."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def nearest_key(key: str, known: Iterable[str]) -> str | None:
    """Return the known dotted key most similar to the given one; the last part counts as much as the whole.

    People mostly get the place wrong (``actor.lr``) or one word (``learning_rate``).
    """
    place, dot, last = key.rpartition(".")
    last = _OTHER_NAMES.get(last, last)
    key = f"{place}{dot}{last}"
    whole_matcher, last_matcher = SequenceMatcher(), SequenceMatcher()
    whole_matcher.set_seq2(key)
    last_matcher.set_seq2(last)
    best, best_score = None, 0.0
    for candidate in sorted(known):
        whole_matcher.set_seq1(candidate)
        last_matcher.set_seq1(candidate.rpartition(".")[2])
        if whole_matcher.quick_ratio() + last_matcher.quick_ratio() <= best_score:
            continue
        score = whole_matcher.ratio() + last_matcher.ratio()
        if score > best_score:
            best, best_score = candidate, score
    return best if best_score >= 1.0 else None
