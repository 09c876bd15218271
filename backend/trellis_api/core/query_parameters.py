"""Refuses query parameters that an endpoint does not know: a misspelt filter would answer with everything."""

import re

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from trellis_recipes.issues import nearest

from trellis_api.core.errors import InvalidRequest

#: For ``json_schema_extra`` of a parameter that is also sent as ``name[key]=value``, once for each key.
DEEP_OBJECT = {"x-deep-object": True}
_DEEP = re.compile(r"(\w+)\[([^\[\]]{1,200})\]")
#: Names by path and methods; the routes are made once a process.
_known: dict[tuple[str, frozenset[str]], frozenset[str]] = {}


class UnknownQueryParameter(InvalidRequest):
    """The endpoint has no such parameter."""

    code = "unknown_query_parameter"


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse unknown query parameters with ``UnknownQueryParameter``, as a dependency of every API route."""
    if not request.query_params:
        return
    known = _find_known(request.scope["route"])
    unknown = sorted(
        name
        for name in set(request.query_params)
        if (name not in known or name.endswith("[]")) and not _is_deep(name, known)
    )
    if unknown:
        issues = [_describe(name, known) for name in unknown]
        raise UnknownQueryParameter(" ".join(str(issue["message"]) for issue in issues), issues)


def read_deep_object(request: Request, name: str) -> dict[str, str]:
    """Read the values of ``name[key]=value`` by key."""
    found = {}
    for sent, value in request.query_params.items():
        match = _DEEP.fullmatch(sent)
        if match is not None and match.group(1) == name:
            found[match.group(2)] = value
    return found


def _is_deep(name: str, known: frozenset[str]) -> bool:
    match = _DEEP.fullmatch(name)
    return match is not None and f"{match.group(1)}[]" in known


def _describe(name: str, known: frozenset[str]) -> dict[str, str | None]:
    known = frozenset(name.removesuffix("[]") for name in known)
    there = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
    suggestion = nearest(name, sorted(known))
    hint = f"Did you mean '{suggestion}'?" if suggestion else there
    return {
        "code": UnknownQueryParameter.code,
        "field": name,
        "message": f"Unknown query parameter '{name[:80]}'. {hint}",
        "suggestion": suggestion,
    }


def _find_known(route: APIRoute) -> frozenset[str]:
    key = (route.path, frozenset(route.methods))
    if key not in _known:
        _known[key] = frozenset(_list_names(route.dependant))
    return _known[key]


def _list_names(dependant: Dependant) -> list[str]:
    """List the query parameters of the endpoint and of everything it depends on."""
    names = [parameter.alias for parameter in dependant.query_params]
    names += [
        f"{parameter.alias}[]"
        for parameter in dependant.query_params
        if getattr(parameter.field_info, "json_schema_extra", None) == DEEP_OBJECT
    ]
    return names + [name for each in dependant.dependencies for name in _list_names(each)]
