/** Parts of a run's charts under headings of their own, by what their metrics' names begin with. */
import { isBaseline, isHeldOut } from './pairs'

export const SECTIONS = [
  'reward',
  'validation',
  'training',
  'actor',
  'critic',
  'length',
  'performance',
  'machine',
  'other',
] as const
type Section = (typeof SECTIONS)[number]

/** Fewer charts are seen at once, and headings would only take room. */
const LEAST_SECTIONED = 7

const MATCHES: readonly [Section, (key: string) => boolean][] = [
  ['machine', by(/memory|_gb$|^(cpu|gpu|system|machine)\//)],
  ['performance', by(/^(perf|timing_s|timing_per_token_ms|response_time_s)\/|throughput|\/(step_)?time(\(s\)|_s)$/)],
  ['length', by(/^(response_length|prompt_length|global_seqlen)/)],
  ['validation', (key) => isHeldOut(key) || isBaseline(key)],
  ['reward', by(/^critic\/(rewards|score|advantages|returns)\/|^(train\/)?(rewards?|accuracy|avg_)/)],
  ['reward', by(/^training\/(answer_reward|format_only|uniform_group|all_(correct|wrong)_group|length_score)/)],
  ['actor', by(/^(actor|rollout_corr)\/|^training\/(rollout_|repeated_ngram)/)],
  ['critic', by(/^critic\//)],
  ['training', by(/^train\/|^(loss|grad_norm|learning_rate|lr|entropy|epoch|mean_token_accuracy)$|^logps\//)],
]

function by(pattern: RegExp): (key: string) => boolean {
  return (key) => pattern.test(key)
}

export function sectionOf(key: string): Section {
  return MATCHES.find(([, matches]) => matches(key))?.[0] ?? 'other'
}

/** The charts in sections, each in its given order; one section without a name where they are few or all of one kind. */
export function inSections<Chart extends { key: string }>(
  charts: readonly Chart[],
): { name: Section | null; charts: Chart[] }[] {
  const found = SECTIONS.map((name) => ({ name, charts: charts.filter(({ key }) => sectionOf(key) === name) }))
  const filled = found.filter((section) => section.charts.length > 0)
  return charts.length < LEAST_SECTIONED || filled.length < 2 ? [{ name: null, charts: [...charts] }] : filled
}
