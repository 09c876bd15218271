/** Scores of a job's checkpoints among its metrics: `eval/<label>/<metric>`. */
import type { Job } from '../../types'

/** The benchmark's label and the metric of a key that is a score of one of these labels; null for everything else. */
export function scoreOf(key: string, labels: readonly string[]): { label: string; metric: string } | null {
  // A label may hold dots and dashes and no slash; a metric may hold anything.
  const label = labels.find((one) => key.startsWith(`eval/${one}/`))
  return label === undefined ? null : { label, metric: key.slice(`eval/${label}/`.length) }
}

export function labelsOf(job: Pick<Job, 'evaluate'>): string[] {
  return (job.evaluate?.benchmarks ?? []).flatMap((order) => order.label ?? [])
}

/** Scores that stand for a benchmark where no rule of the job names one, the first that is reported. */
const USUAL = ['flexible', 'accuracy', 'pass@1', 'macro'] as const

/** One score of each benchmark to chart unasked: that of a rule, else the usual one, else the first. */
export function scoresUnasked(job: Pick<Job, 'evaluate'>, reported: readonly string[]): string[] {
  const rules = [job.evaluate?.best_by, job.evaluate?.early_stop]
  return labelsOf(job).flatMap((label) => {
    const metrics = reported.flatMap((key) => {
      const score = scoreOf(key, [label])
      return score === null ? [] : [score.metric]
    })
    const ruled = rules.find((rule) => rule?.label === label)?.metric
    const metric = [ruled, ...USUAL, metrics[0]].find((one) => one != null && metrics.includes(one))
    return metric == null ? [] : [`eval/${label}/${metric}`]
  })
}
