"""Builds the API: ``uvicorn trellis_api.main:create_app --factory``."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, Depends, FastAPI
from fastapi.concurrency import run_in_threadpool
from trellis_recipes.environment_plugins import find_plugins

import trellis_api.wiring  # noqa: F401
from trellis_api import health, llms
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.auth.dependencies import require_user
from trellis_api.auth.router import router as auth_router
from trellis_api.benchmarks.router import router as benchmarks_router
from trellis_api.cards.router import router as cards_router
from trellis_api.core.content_encoding import JsonCompression
from trellis_api.core.database import Database
from trellis_api.core.errors import ERROR_RESPONSES, install_error_handlers
from trellis_api.core.frontend import mount_frontend
from trellis_api.core.query_parameters import refuse_unknown_parameters
from trellis_api.core.redaction import install_log_redaction
from trellis_api.core.request_guard import RequestGuard
from trellis_api.core.request_ids import RequestIds
from trellis_api.core.security_headers import SecurityHeaders
from trellis_api.core.settings import Settings
from trellis_api.core.shared_lookups import SharedLookups
from trellis_api.core.tasks import TaskQueue
from trellis_api.core.turns import Turns
from trellis_api.core.warm_up import warm_up_later
from trellis_api.data_tasks.router import router as data_tasks_router
from trellis_api.datasets.router import router as datasets_router
from trellis_api.datasets.versions_router import router as versions_router
from trellis_api.datasets.warm_up import read_a_page
from trellis_api.downloads.router import router as downloads_router
from trellis_api.endpoints.openai.callers import require_caller
from trellis_api.endpoints.openai.engines import Engines
from trellis_api.endpoints.openai.router import router as openai_router
from trellis_api.endpoints.router import router as endpoints_router
from trellis_api.environments.router import router as environments_router
from trellis_api.evaluations.compare_router import router as compare_router
from trellis_api.evaluations.router import router as evaluations_router
from trellis_api.fine_tuning.router import router as fine_tuning_router
from trellis_api.generations.router import router as generations_router
from trellis_api.ingest.router import router as ingest_router
from trellis_api.job_comparison.router import router as job_comparison_router
from trellis_api.job_pipelines.router import router as job_pipelines_router
from trellis_api.jobs.checkpoints.router import router as checkpoints_router
from trellis_api.jobs.events.stream import EventHub
from trellis_api.jobs.exports.router import router as exports_router
from trellis_api.jobs.replay.router import router as replay_router
from trellis_api.jobs.results_router import router as results_router
from trellis_api.jobs.rollouts.router import router as rollouts_router
from trellis_api.jobs.router import router as jobs_router
from trellis_api.jobs.script_router import router as job_scripts_router
from trellis_api.jobs.timing.router import router as timing_router
from trellis_api.jobs.warm_up import load_engines
from trellis_api.lineage.router import datasets_router as dataset_lineage_router
from trellis_api.lineage.router import models_router as model_lineage_router
from trellis_api.models.router import router as models_router
from trellis_api.monitoring.dependencies import install_probes
from trellis_api.monitoring.prometheus import PrometheusMiddleware
from trellis_api.monitoring.router import metrics_router
from trellis_api.monitoring.router import router as monitoring_router
from trellis_api.openapi_contracts import describe_contracts
from trellis_api.path_names import use_path_names
from trellis_api.pipelines.router import router as pipelines_router
from trellis_api.recipes.router import router as recipes_router
from trellis_api.registry.router import router as registry_router
from trellis_api.reports.router import router as reports_router
from trellis_api.rewards.router import router as rewards_router
from trellis_api.saved_views.router import router as saved_views_router
from trellis_api.search.router import router as search_router
from trellis_api.shared_conversations.router import router as shared_conversations_router
from trellis_api.sweeps.router import router as sweeps_router
from trellis_api.transfers.router import router as transfers_router
from trellis_api.uploads.router import router as uploads_router
from trellis_api.uploads.service import remove_expired
from trellis_api.votes.router import router as votes_router
from trellis_api.workflows.router import router as workflows_router

log = logging.getLogger(__name__)

API_PREFIX = "/api/v1"
#: Routers for logged-in users.
ROUTERS: list[APIRouter] = [
    job_scripts_router,
    replay_router,
    # Fixed paths under /jobs stand before the ones with an id.
    job_comparison_router,
    jobs_router,
    checkpoints_router,
    exports_router,
    results_router,
    rollouts_router,
    timing_router,
    recipes_router,
    rewards_router,
    workflows_router,
    uploads_router,
    datasets_router,
    dataset_lineage_router,
    versions_router,
    data_tasks_router,
    pipelines_router,
    environments_router,
    job_pipelines_router,
    sweeps_router,
    generations_router,
    models_router,
    model_lineage_router,
    cards_router,
    downloads_router,
    registry_router,
    transfers_router,
    endpoints_router,
    votes_router,
    saved_views_router,
    shared_conversations_router,
    benchmarks_router,
    compare_router,
    # Routers with fixed paths under /evaluations stand before the one with ids.
    evaluations_router,
    reports_router,
    monitoring_router,
    search_router,
]


def create_app(settings: Settings | None = None, database: Database | None = None) -> FastAPI:
    """Create the application; the database is not used until it starts."""
    settings = settings or Settings()
    app = FastAPI(
        title="Trellis",
        version="0.1.0",
        description="Train large language models: launch, watch and compare runs.",
        lifespan=_run,
        docs_url=None,  # core/frontend.py serves it: FastAPI's page loads scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{API_PREFIX}/openapi.json",
    )
    app.state.settings = settings
    app.state.database = database or Database(settings)
    app.state.turns = Turns(app.state.database)
    app.state.tasks = TaskQueue(settings)
    app.state.event_hub = EventHub(app.state.database, poll_interval_s=settings.event_poll_interval_s)
    app.state.engines = Engines(settings, app.state.database, app.state.tasks)
    app.state.callers = SharedLookups()
    install_probes(app, settings, app.state.database)
    install_error_handlers(app)
    app.add_middleware(RequestGuard, settings=settings)
    app.add_middleware(JsonCompression)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestIds)
    app.add_middleware(PrometheusMiddleware)
    app.router.routes.extend(_assemble().routes)
    mount_frontend(app, settings.frontend_path, docs_path=f"{API_PREFIX}/docs")
    describe_contracts(app, prefix=API_PREFIX)
    return app


@cache
def _assemble() -> APIRouter:
    """Assemble all routes once: settings don't change them, and they take most of the startup time."""
    api = APIRouter(responses={422: ERROR_RESPONSES[422]})
    api.include_router(health.router)
    api.include_router(llms.router)
    api.include_router(metrics_router)
    api.include_router(auth_router, prefix=API_PREFIX, dependencies=[Depends(refuse_unknown_parameters)])
    api.include_router(ingest_router, prefix=API_PREFIX)
    # Routes are tried in this order, one by one: what is asked most often stands first.
    for openai, guard in ((openai_router, require_caller), (fine_tuning_router, require_user)):
        api.include_router(openai, dependencies=[Depends(guard), Depends(refuse_unknown_parameters)])
    for router in ROUTERS:
        api.include_router(
            router,
            prefix=API_PREFIX,
            dependencies=[Depends(require_user), Depends(refuse_unknown_parameters), Depends(use_path_names)],
            responses={403: ERROR_RESPONSES[403]},
        )
    return api


@asynccontextmanager
async def _run(app: FastAPI) -> AsyncIterator[None]:
    install_log_redaction()
    settings: Settings = app.state.settings
    ensure_admin_token(app.state.database, path=settings.admin_token_path)
    remove_expired(app.state.database, settings)
    app.state.probes.start()
    for problem in find_plugins().problems:
        log.warning("%s", problem)
    warm_up_later(read_a_page, load_engines)
    yield
    await run_in_threadpool(app.state.probes.stop)
    await app.state.event_hub.close()
    await app.state.engines.close()
    app.state.database.dispose()
