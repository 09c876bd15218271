"""The probes of the running application."""

from typing import Annotated

from fastapi import Depends, FastAPI, Request

from trellis_api.core.database import Database
from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.monitoring.machine import look_at_machine
from trellis_api.monitoring.measurements import component_probes
from trellis_api.monitoring.probes import Probes


def install_probes(app: FastAPI, settings: Settings, database: Database) -> Probes:
    """Give the application its probes; the caller starts and stops them."""
    probes = Probes(
        component_probes(settings, database),
        lambda: look_at_machine(settings.data_root, nodes=find_nodes(settings)),
    )
    app.state.probes = probes
    return probes


async def _probes(request: Request) -> Probes:
    probes: Probes = request.app.state.probes
    return probes


ProbesDep = Annotated[Probes, Depends(_probes)]
