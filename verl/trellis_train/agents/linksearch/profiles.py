"""Profiles by seed: skills go with titles, and jobs follow each other without an overlap."""

import random
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import yaml

from trellis_train.agents.linksearch.database import Education, Experience, Profile

#: The newest month of a career and the day of every profile: a seed gives the same bytes at any time.
_THIS_YEAR, _THIS_MONTH = 2025, 6
_LONGEST_JOB_MONTHS = 72


@cache
def vocabulary() -> dict[str, Any]:
    """Load the words in ``vocabulary.yaml``."""
    text = resources.files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.safe_load(text)
    return words


def make_profiles(count: int, *, seed: int) -> Iterator[Profile]:
    """Generate ``count`` profiles; the first of a larger number are those of a smaller one."""
    taken = set[str]()
    for rid in range(1, count + 1):
        # A generator for each: what one profile draws changes nothing about the others.
        yield _make_profile(random.Random(f"{seed}:{rid}"), rid, taken)  # noqa: S311 - no secret


def _make_profile(draw: random.Random, rid: int, taken: set[str]) -> Profile:
    words = vocabulary()
    family = draw.choice(words["families"])
    name = f"{_make_name(draw)} {_make_name(draw)}"
    jobs = tuple(_make_jobs(draw, family))
    skills = draw.sample(family["skills"], k=draw.randint(3, min(5, len(family["skills"]))))
    other = draw.choice(draw.choice(words["families"])["skills"])
    if draw.random() < 0.3 and other not in skills:
        skills.append(other)
    newest = jobs[0]
    summary = f"{newest.title} at {newest.company}, {newest.location}"
    about = f"{name} works with {', '.join(skills[:3])}. {len(jobs)} jobs so far, now {newest.title}."
    return Profile(
        rid=rid,
        handle=_make_handle(name, rid, taken),
        name=name,
        summary=summary,
        about=about,
        skills=tuple(skills),
        updated_at=f"{_THIS_YEAR}-{draw.randint(1, _THIS_MONTH):02d}",
        experiences=jobs,
        educations=tuple(_make_educations(draw, family, jobs[-1])),
    )


def _make_name(draw: random.Random) -> str:
    """Generate a made-up word that sounds like a name."""
    words = vocabulary()
    syllables = [
        draw.choice(words["onsets"]) + draw.choice(words["nuclei"]) for _ in range(draw.randint(1, 2))
    ]
    return ("".join(syllables) + draw.choice(words["codas"])).capitalize()


def _make_handle(name: str, rid: int, taken: set[str]) -> str:
    handle = name.lower().replace(" ", "-")
    if handle in taken:
        handle = f"{handle}-{rid}"
    taken.add(handle)
    return handle


def _make_jobs(draw: random.Random, family: dict[str, Any]) -> Iterator[Experience]:
    """Generate one to five jobs, newest first; each ends before the next begins."""
    words = vocabulary()
    until = _THIS_YEAR * 12 + _THIS_MONTH - 1
    for place in range(draw.randint(1, 5)):
        is_current = place == 0 and draw.random() < 0.85
        end = until if is_current else until - draw.randint(1, 6)
        start = end - draw.randint(6, _LONGEST_JOB_MONTHS)
        other = draw.choice(words["families"]) if place and draw.random() < 0.15 else family
        title, company = draw.choice(other["titles"]), draw.choice(words["companies"])
        yield Experience(
            title=title,
            company=company,
            location=draw.choice(words["locations"]),
            start_date=_month(start),
            end_date=None if is_current else _month(end),
            employment_type=draw.choice(words["employment_types"]),
            description=f"Worked on {draw.choice(other['skills'])} at {company}.",
        )
        until = start


def _make_educations(draw: random.Random, family: dict[str, Any], first: Experience) -> Iterator[Education]:
    """Generate one or two degrees, newest first, that ended before the first job began."""
    words = vocabulary()
    end = int(first.start_date[:4])
    for _ in range(draw.choice((1, 1, 2))):
        start = end - draw.randint(2, 5)
        yield Education(
            school=draw.choice(words["schools"]),
            degree=draw.choice(words["degrees"]),
            field_of_study=draw.choice(family["fields"]),
            start_date=str(start),
            end_date=str(end),
        )
        end = start


def _month(number: int) -> str:
    return f"{number // 12}-{number % 12 + 1:02d}"
