/** Where a launch sends its metrics as well, and how that becomes a request. */
import type { Job, JobCreate } from '../../types'

export interface ReportDraft {
  /** Of Weights & Biases; empty for none. */
  project: string
  entity: string
  name: string
  tags: string[]
}

export function emptyReport(): ReportDraft {
  return { project: '', entity: '', name: '', tags: [] }
}

/** A draft that asks for the same as a job did. */
export function reportOfJob(job: Job): ReportDraft {
  const wandb = job.report_to?.wandb
  return wandb === undefined
    ? emptyReport()
    : { project: wandb.project, entity: wandb.entity ?? '', name: wandb.name ?? '', tags: [...(wandb.tags ?? [])] }
}

export function toReport(draft: ReportDraft): JobCreate['report_to'] {
  const [project, entity, name] = [draft.project.trim(), draft.entity.trim(), draft.name.trim()]
  if (project === '') return null
  return {
    wandb: {
      project,
      ...(entity === '' ? {} : { entity }),
      ...(name === '' ? {} : { name }),
      ...(draft.tags.length === 0 ? {} : { tags: draft.tags }),
    },
  }
}
