"""Connects domains that do not import each other; the API and the workers import it when they start.

For every kind of thing that can be in use: who knows users of it (``core/uses.py``). For functions that a
domain calls and another one has: which one it is (``core/provided.py``).
"""

from trellis_api.core import uses
from trellis_api.core.uses import one_by_one
from trellis_api.data_tasks import uses as data_tasks
from trellis_api.endpoints import takeover
from trellis_api.endpoints import uses as endpoints
from trellis_api.environments.uses import PARAMETER as ENVIRONMENT
from trellis_api.evaluations import uses as evaluations
from trellis_api.fine_tuning import uses as fine_tuning
from trellis_api.job_pipelines import uses as job_pipelines
from trellis_api.jobs import service as jobs_service
from trellis_api.jobs import sweep_names
from trellis_api.jobs import uses as jobs
from trellis_api.jobs.checkpoints.service import LIST_SERVED_STEPS
from trellis_api.models import uses as models
from trellis_api.registry import uses as registry
from trellis_api.rewards import uses as rewards
from trellis_api.sweeps import repository as sweeps_repository
from trellis_api.sweeps import uses as sweeps
from trellis_api.transfers import uses as transfers
from trellis_api.workflows.presentation import SUMMARISE_JOBS
from trellis_api.workflows.service import PARAMETER as WORKFLOW

uses.DATASETS.register("jobs", one_by_one(jobs.find_of_dataset))
uses.DATASETS.register("evaluations", one_by_one(evaluations.find_of_dataset))
uses.DATASETS.register("rewards", one_by_one(rewards.find_of_dataset))
uses.DATASETS.register("data_tasks", one_by_one(data_tasks.find_of_dataset))
uses.DATASETS.register("job_pipelines", job_pipelines.USERS.of_datasets)
uses.DATASETS.register("sweeps", sweeps.USERS.of_datasets)

uses.VERSIONS.register("jobs", one_by_one(jobs.find_of_version))
uses.VERSIONS.register("evaluations", one_by_one(evaluations.find_of_version))
uses.VERSIONS.register("data_tasks", one_by_one(data_tasks.find_of_version))
uses.VERSIONS.register("rewards", one_by_one(rewards.find_of_version))
uses.VERSIONS.register("models", one_by_one(models.find_of_version))
uses.VERSIONS.register("job_pipelines", job_pipelines.USERS.of_versions)
uses.VERSIONS.register("sweeps", sweeps.USERS.of_versions)

uses.REFS.register("job_pipelines", job_pipelines.USERS.of_refs)
uses.REFS.register("sweeps", sweeps.USERS.of_refs)

uses.MODELS.register("jobs", one_by_one(jobs.find_of_model))
uses.MODELS.register("rewards", one_by_one(rewards.find_of_model))
uses.MODELS.register("data_tasks", one_by_one(data_tasks.find_of_model))
uses.MODELS.register("transfers", one_by_one(transfers.find_of_model))
uses.MODELS.register("registry", one_by_one(registry.find_of_model))
uses.MODELS.register("endpoints", endpoints.find_of_models)
uses.MODELS.register("job_pipelines", job_pipelines.USERS.of_models)
uses.MODELS.register("sweeps", sweeps.USERS.of_models)

uses.REWARD_FILES.register("rewards", one_by_one(rewards.find_of_file))
uses.REWARD_FILES.register("evaluations", one_by_one(evaluations.find_of_reward_file))
uses.REWARD_FILES.register("job_pipelines", job_pipelines.USERS.of_reward_files)
uses.REWARD_FILES.register("sweeps", sweeps.USERS.of_reward_files)

uses.BENCHMARKS.register("evaluations", one_by_one(evaluations.find_of_benchmark))
uses.BENCHMARKS.register("job_pipelines", job_pipelines.USERS.of_benchmarks)
uses.BENCHMARKS.register("sweeps", sweeps.USERS.of_benchmarks)

uses.ENVIRONMENTS.register("jobs", jobs.find_naming(ENVIRONMENT))
uses.ENVIRONMENTS.register("job_pipelines", job_pipelines.USERS.of_environments)
uses.ENVIRONMENTS.register("sweeps", sweeps.USERS.of_environments)

uses.WORKFLOWS.register("jobs", jobs.find_naming(WORKFLOW))
uses.WORKFLOWS.register("job_pipelines", job_pipelines.USERS.of_workflows)
uses.WORKFLOWS.register("sweeps", sweeps.USERS.of_workflows)

uses.UPLOADS.register("data_tasks", data_tasks.find_of_uploads)
uses.UPLOADS.register("fine_tuning", fine_tuning.find_of_uploads)

sweep_names.MAP_SWEEP_NAMES.provide(sweeps_repository.map_names)
sweep_names.FIND_SWEEP_ID.provide(sweeps_repository.find_sweep_id)
sweep_names.EXPRESS_SWEEP.provide(sweeps_repository.express_name)
SUMMARISE_JOBS.provide(jobs.summarise_naming)
LIST_SERVED_STEPS.provide(endpoints.list_served_steps)
jobs_service.RELEASE_CHECKPOINTS.provide(endpoints.release_checkpoints)
jobs_service.LEAVE_ENGINE.provide(takeover.leave_engine)
