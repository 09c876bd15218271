"""Every module with tables, so that Alembic and tests see the whole schema."""

from sqlmodel import SQLModel

import trellis_api.auth.models
import trellis_api.benchmarks.models
import trellis_api.data_tasks.models
import trellis_api.datasets.models
import trellis_api.endpoints.models
import trellis_api.environments.models
import trellis_api.evaluations.models
import trellis_api.fine_tuning.models
import trellis_api.job_pipelines.models
import trellis_api.jobs.alarms.models
import trellis_api.jobs.evaluating.models
import trellis_api.jobs.metrics.models
import trellis_api.jobs.models
import trellis_api.jobs.reporting.models
import trellis_api.jobs.timing.models
import trellis_api.models.models
import trellis_api.monitoring.models
import trellis_api.pipelines.models
import trellis_api.registry.models
import trellis_api.reports.models
import trellis_api.rewards.models
import trellis_api.saved_views.models
import trellis_api.shared_conversations.models
import trellis_api.sweeps.models
import trellis_api.transfers.models
import trellis_api.votes.models
import trellis_api.workflows.models  # noqa: F401

metadata = SQLModel.metadata
