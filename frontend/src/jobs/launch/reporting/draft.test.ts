import { describe, expect, it } from 'vitest'

import type { Job } from '../../types'
import { draftOfJob, emptyDraft, toRequest } from '../draft'
import { emptyReport, reportOfJob, toReport } from './draft'

describe('metrics for Weights & Biases', () => {
  it('asks for nothing without a project', () => {
    expect(toReport({ ...emptyReport(), entity: 'team', tags: ['a'] })).toBeNull()
    expect(toRequest(emptyDraft(), 'first')).not.toHaveProperty('report_to')
  })

  it('names what was filled in', () => {
    const report = { project: ' sums ', entity: '', name: 'first', tags: ['a'] }
    expect(toRequest({ ...emptyDraft(), report }, 'first').report_to).toEqual({
      wandb: { project: 'sums', name: 'first', tags: ['a'] },
    })
  })

  it('is kept by a clone', () => {
    const wandb = { project: 'sums', entity: 'team', name: null, tags: null }
    const job = {
      evaluate: null,
      export_as: null,
      keep_best_by: null,
      report_to: { wandb, url: null, sent_step: 3, problem: null },
      model: { id: 'mdl_a', name: 'tiny' },
      dataset: null,
      validation_dataset: null,
      columns: {},
      params: {},
      overrides: {},
      resources: { gpus: 1 },
      tags: [],
    } as unknown as Job
    expect(reportOfJob(job)).toEqual({ project: 'sums', entity: 'team', name: '', tags: [] })
    expect(draftOfJob(job, 'again').report.project).toBe('sums')
  })
})
