"""Names of the Celery tasks, so that the API can send them without importing the workers."""

#: Send those of the tasks below that have something to do. Args: none.
LOOK_FOR_WORK = "trellis.due.look_for_work"
#: Launch every queued job that its slots admit. Args: none.
LAUNCH_QUEUED = "trellis.jobs.launch_queued"
#: Compare active jobs with Ray and with their heartbeats, and settle them. Args: none.
RECONCILE = "trellis.jobs.reconcile"
#: Look at what exports wrote that are over, register their models and settle them. Args: none.
FINISH_EXPORTS = "trellis.jobs.finish_exports"
#: Tell a running job to checkpoint and leave, or end its Ray job. Args: (job_id,).
STOP = "trellis.jobs.stop"
#: Remove the files of deleted jobs, and what exports that failed have left. Args: none.
PURGE = "trellis.jobs.purge"
#: Remove the files of checkpoints that were given up. Args: none.
PRUNE = "trellis.jobs.prune_checkpoints"
#: Look at the results of evaluations that are over, record their scores and settle them. Args: none.
FINISH_EVALUATIONS = "trellis.evaluations.finish"
#: Queue the evaluations of checkpoints that running jobs have asked for. Args: none.
QUEUE_EVALUATIONS = "trellis.evaluations.queue_due"
#: Stop endpoints that nobody has used for longer than they may idle. Args: none.
STOP_IDLE_ENDPOINTS = "trellis.endpoints.stop_idle"
#: Bring the files of benchmarks that wait for them. Args: none.
INSTALL_BENCHMARKS = "trellis.evaluations.install_benchmarks"
#: Write the files of reports that wait. Args: none.
WRITE_REPORTS = "trellis.evaluations.write_reports"
#: Remove the files of deleted evaluations and reports. Args: none.
TIDY_EVALUATIONS = "trellis.evaluations.tidy"
#: Fetch the files of a hub model. Args: (model_id,).
FETCH_MODEL = "trellis.models.fetch"
#: Fetch every hub model that waits, or whose fetch was lost. Args: none.
FETCH_PENDING_MODELS = "trellis.models.fetch_pending"
#: Carry out the transfers of models that wait, one after the other. Args: none.
RUN_TRANSFERS = "trellis.models.run_transfers"
#: Carry out every dry run of rewards that waits. Args: none.
RUN_DRY_RUNS = "trellis.rewards.run_dry_runs"
#: Carry out the data tasks that wait, one after the other. Args: none.
RUN_DATA_TASKS = "trellis.data.run_tasks"
#: Carry out the previews that wait. Args: none.
RUN_PREVIEWS = "trellis.data.run_previews"
#: Remove the files of deleted datasets and tasks, and rows that no version holds any more. Args: none.
TIDY_DATA = "trellis.data.tidy"
#: Make the environments that wait, and let those become ready whose rows have arrived. Args: none.
MAKE_ENVIRONMENTS = "trellis.environments.make"
#: Carry out the calls of tools that wait. Args: none.
CALL_TOOLS = "trellis.environments.call_tools"
#: Install what packages of workflows require, one after the other. Args: none.
INSTALL_WORKFLOWS = "trellis.workflows.install"
#: Begin stages of job pipelines whose needs are met, and take in those that are over. Args: none.
ADVANCE_JOB_PIPELINES = "trellis.jobs.advance_pipelines"
#: Begin fine-tuning jobs whose files have been read. Args: none.
ADVANCE_FINE_TUNING = "trellis.fine_tuning.advance"
#: Send new metrics of jobs to the services that they name. Args: none.
SEND_REPORTS = "trellis.jobs.send_reports"
#: Begin runs of sweeps, stop those that are worse than others, and take in those that are over. Args: none.
ADVANCE_SWEEPS = "trellis.jobs.advance_sweeps"
#: Keep what the nodes measure now. Args: none.
SAMPLE_MACHINES = "trellis.machines.sample"
#: Seconds between two samples of a machine.
SAMPLE_INTERVAL_S = 10.0
