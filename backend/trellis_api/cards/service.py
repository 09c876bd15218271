"""Cards as clients ask for them, and the check of one that somebody has."""

from typing import Any

import yaml
from pydantic import ValidationError
from sqlmodel import Session

from trellis_api.cards.errors import CardOutdated, CardUnreadable
from trellis_api.cards.facts import gather
from trellis_api.cards.schemas import WITH_CURVES, WITH_WHOLE_CURVES, CardChecked, CardFacts
from trellis_api.cards.writing import BEGIN, END, STATEMENTS, write, write_body
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_api.models.service import get_model

_MAX_TOLD = 50


def read_card(session: Session, settings: Settings, *, model_id: str) -> str:
    """Return the current card of a model."""
    return read_card_of_download(session, settings, model=get_model(session, model_id=model_id))


def read_card_of_download(session: Session, settings: Settings, *, model: Model) -> str:
    """Return the current card of a model that was already looked up."""
    return write(gather(session, model=model, data_root=settings.data_root), base_url=settings.base_url)


def check_card(session: Session, settings: Settings, *, model_id: str, text: str) -> CardChecked:
    """Check whether everything that a card states still holds. Raises ``CardOutdated`` with each difference.

    Compared are the statements of its front matter and the text between the marks; what people wrote
    around the marks is theirs.
    """
    stated, body = _read(text)
    model = get_model(session, model_id=model_id)
    facts = gather(session, model=model, data_root=settings.data_root)
    facts = _as_of(facts, stated.format)
    then, now = _flatten(stated.model_dump(mode="json")), _flatten(facts.model_dump(mode="json"))
    differences = [
        {"field": field, "card": then.get(field), "now": now.get(field)}
        for field in sorted(set(then) | set(now))
        if then.get(field) != now.get(field)
    ]
    if not differences and body != write_body(stated, base_url=settings.base_url):
        differences = [_find_line(body, write_body(stated, base_url=settings.base_url))]
    if differences:
        first = differences[0]
        raise CardOutdated(
            f"The card is no longer right in {len(differences)} places: {first['field']} is "
            f"{first['now']!r}, and the card says {first['card']!r}. Write it anew.",
            {"differences": differences[:_MAX_TOLD]},
        )
    return CardChecked(model_id=model.id, statements=len(now))


def _as_of(facts: CardFacts, format_: int) -> CardFacts:
    """Return what cards of an earlier format state: they are right as long as that is."""
    if not 1 <= format_ < WITH_WHOLE_CURVES:
        return facts
    update: dict[str, Any] = {"has_whole_curves": False}
    if format_ < WITH_CURVES:
        update["curves"] = {}
    trainings = [each.model_copy(update=update) for each in facts.trainings]
    return facts.model_copy(update={"format": format_, "trainings": trainings})


def _read(text: str) -> tuple[CardFacts, str]:
    """Split a card into the facts in its front matter and the generated text."""
    parts = text.replace("\r\n", "\n").split("---\n", 2)
    if len(parts) < 3 or parts[0].strip():
        raise CardUnreadable("The card doesn't start with front matter between two '---' lines.")
    try:
        # A card of ours has none; nested ones unfold to more than there is memory.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(parts[1])):
            raise CardUnreadable("The front matter contains YAML aliases (*name), which are not allowed.")
        matter = yaml.safe_load(parts[1])
        stated = CardFacts.model_validate(matter[STATEMENTS])
    except (yaml.YAMLError, TypeError, KeyError, ValidationError, RecursionError) as error:
        raise CardUnreadable(
            f"The front matter has no '{STATEMENTS}' that can be read ({type(error).__name__}); it is what "
            "is compared."
        ) from error
    begin, end = parts[2].find(BEGIN), parts[2].find(END)
    if not 0 <= begin < end:
        raise CardUnreadable("The markers around the generated text are missing.")
    return stated, parts[2][begin : end + len(END)]


def _flatten(value: Any, place: str = "") -> dict[str, Any]:
    """Map the path of each single statement to its value."""
    if isinstance(value, dict) and value:
        items: Any = value.items()
    elif isinstance(value, list) and value:
        items = enumerate(value)
    else:
        return {place: value}
    found: dict[str, Any] = {}
    for key, each in items:
        found |= _flatten(each, f"{place}.{key}" if place else str(key))
    return found


def _find_line(card: str, wanted: str) -> dict[str, Any]:
    """Find the first line of the text that differs from what the card's own facts generate."""
    ours, theirs = wanted.splitlines(), card.splitlines()
    for number, line in enumerate(ours):
        if number >= len(theirs) or theirs[number] != line:
            there = theirs[number] if number < len(theirs) else None
            return {"field": f"line {number + 1} of the text", "card": there, "now": line}
    return {"field": f"line {len(ours) + 1} of the text", "card": theirs[len(ours)], "now": None}
