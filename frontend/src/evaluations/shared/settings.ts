/** What tells the ways apart in which one benchmark was measured. */
import type { components } from '@/api/schema'

export type Configuration = components['schemas']['LeaderboardConfiguration']
export type RankedScore = components['schemas']['RankedScore']

/** A setting that is not the benchmark's own: its name in the texts, and its value. */
export interface Setting {
  name: string
  value: string | number
}

/** What was set, the number of problems first: it says most about what a score is worth. */
export function settingsOf({ order, seed }: Configuration): Setting[] {
  const { limit, shots, chat, system, decoding } = order
  const found: Setting[] = [limit == null ? { name: 'all', value: '' } : { name: 'limit', value: limit }]
  const add = (name: string, value: string | number | null | undefined) => {
    if (value != null && value !== '') found.push({ name, value })
  }
  add('shots', shots)
  if (chat !== 'auto') add('chat', chat)
  if (system != null) add('system', '✓')
  if (order.benchmark === 'mmlu') add('mode', order.mode)
  if (order.benchmark === 'humaneval' && order.samples > 1) add('samples', order.samples)
  if (order.benchmark === 'custom') add('scorer', order.scorer.kind)
  if (decoding !== undefined && decoding.temperature > 0) add('temperature', decoding.temperature)
  add('maxTokens', decoding?.max_tokens)
  const parts = [
    ('levels' in order && order.levels) || [],
    ('types' in order && order.types) || [],
    ('subjects' in order && order.subjects) || [],
  ].flat()
  add('only', parts.join(', '))
  // The seed decides which problems are drawn and what is sampled, and else nothing.
  if (limit != null || (decoding?.temperature ?? 0) > 0) add('seed', seed)
  return found
}

/** Length of a full bar: 1 for shares, the largest value for everything else. */
export function fullLength(items: readonly RankedScore[], isShare: boolean): number {
  const values = items.flatMap(({ score }) => [score.value, score.high ?? score.value])
  return isShare && values.every((value) => value >= 0 && value <= 1) ? 1 : Math.max(0, ...values)
}
