/** How long a job ran. */
import type { Job } from '../types'

export interface SlotPrice {
  per_hour: number
  currency: string
}

/** Money of all attempts so far; null without a price, without slots and before the first has begun. */
export function costOf(
  job: Pick<Job, 'earlier_run_time_s' | 'started_at' | 'finished_at' | 'resources'>,
  price: SlotPrice | null,
  now: number,
): number | null {
  const seconds = runTimeS(job, now)
  if (price === null || seconds === null || job.resources.gpus === 0) return null
  return (seconds / 3600) * job.resources.gpus * price.per_hour
}

/** Seconds of all attempts, the one that runs up to `now` (milliseconds); null before the first has begun. */
export function runTimeS(
  job: Pick<Job, 'earlier_run_time_s' | 'started_at' | 'finished_at'>,
  now: number,
): number | null {
  if (job.started_at === null) return job.earlier_run_time_s > 0 ? job.earlier_run_time_s : null
  const end = job.finished_at === null ? now : Date.parse(job.finished_at)
  return job.earlier_run_time_s + Math.max(0, end - Date.parse(job.started_at)) / 1000
}
