"""Refuses query parameters that an endpoint does not know: a misspelt filter would answer with everything."""

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from trellis_recipes.issues import nearest

from trellis_api.core.errors import InvalidRequest

#: Names by path and methods; the routes are made once a process.
_known: dict[tuple[str, frozenset[str]], frozenset[str]] = {}


class UnknownQueryParameter(InvalidRequest):
    """The endpoint has no such parameter."""

    code = "unknown_query_parameter"


async def refuse_unknown_parameters(request: Request) -> None:
    """A dependency of every route below the API's prefix; raises ``UnknownQueryParameter``."""
    if not request.query_params:
        return
    known = _find_known(request.scope["route"])
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        issues = [_describe(name, known) for name in unknown]
        raise UnknownQueryParameter(" ".join(str(issue["message"]) for issue in issues), issues)


def _describe(name: str, known: frozenset[str]) -> dict[str, str | None]:
    suggestion = nearest(name, sorted(known))
    there = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
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
    """Of the endpoint and of all that it depends on."""
    names = [parameter.alias for parameter in dependant.query_params]
    return names + [name for each in dependant.dependencies for name in _list_names(each)]
