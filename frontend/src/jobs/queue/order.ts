/** Where a queued job may go: trainings, exports and endpoints in one line, evaluations behind it in their own. */
import type { components } from '@/api/schema'

export type JobQueue = components['schemas']['JobQueue']
export type QueuedJob = JobQueue['items'][number]

export type Way = 'top' | 'up' | 'down'

function lineOf(items: readonly QueuedJob[], id: string): QueuedJob[] {
  const own = items.find((item) => item.job.id === id)
  return items.filter((item) => own !== undefined && (item.job.kind === 'evaluate') === (own.job.kind === 'evaluate'))
}

/** The job that stands at this place of a line; null behind all others, undefined where the rest is not listed. */
function at(line: readonly QueuedJob[], place: number, isWhole: boolean): string | null | undefined {
  return line[place]?.job.id ?? (isWhole ? null : undefined)
}

/** The job that it is placed before, null behind all others; undefined where it cannot go that way. */
export function stepOf(items: readonly QueuedJob[], id: string, way: Way, isWhole = true): string | null | undefined {
  const line = lineOf(items, id)
  const place = line.findIndex((item) => item.job.id === id)
  if (way === 'down') return place < line.length - 1 ? at(line, place + 2, isWhole) : undefined
  if (place <= 0) return undefined
  return line[way === 'top' ? 0 : place - 1]?.job.id
}

/** The same for a job that was dropped on the row of another; undefined where it would not move. */
export function dropOn(
  items: readonly QueuedJob[],
  id: string,
  target: string,
  isWhole = true,
): string | null | undefined {
  const line = lineOf(items, id)
  const from = line.findIndex((item) => item.job.id === id)
  const to = line.findIndex((item) => item.job.id === target)
  if (from < 0 || to < 0 || from === to) return undefined
  return from > to ? target : at(line, to + 1, isWhole)
}
