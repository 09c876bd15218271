/** Geometry of where a step's time goes: stacks over steps, and how many responses were in progress when. */
import type { components } from '@/api/schema'
import { formatFixed } from '@/format/numbers'

type Schemas = components['schemas']
export type Timing = Schemas['TimingRead']
export type Timeline = Schemas['TimelineRead']
export type PhaseColumn = Schemas['PhaseColumn']
export type Lane = Timeline['lanes'][number]
export type Span = Lane['spans'][number]
export type Response = Timeline['responses'][number]

/** Groups of phases in the order of their colours: a group has the same one in every run. */
export const GROUPS = [
  'generation',
  'update',
  'log_probs',
  'scoring',
  'weight_sync',
  'waiting',
  'data',
  'validation',
  'checkpoint',
  'other',
] as const

/** Colour of a group; tools have that of data, which no response waits for. */
function groupColor(group: string, series: readonly string[], plain: string): string {
  const place = GROUPS.findIndex((one) => one === (group === 'tools' ? 'data' : group))
  return series[place] ?? plain
}

/** Colour of a phase: that of its group, paler for each further phase of the group. */
export function phaseColors(
  phases: readonly Pick<PhaseColumn, 'phase' | 'group'>[],
  series: readonly string[],
  plain: string,
): Map<string, string> {
  const seen = new Map<string, number>()
  return new Map(
    phases.map(({ phase, group }) => {
      const color = groupColor(group, series, plain)
      const nth = seen.get(group) ?? 0
      seen.set(group, nth + 1)
      return [
        phase,
        nth === 0 ? color : `color-mix(in srgb, ${color} ${Math.max(35, 100 - 25 * nth)}%, var(--surface))`,
      ]
    }),
  )
}

export interface Block {
  phase: string
  column: number
  /** From the bottom, as shares of the highest column. */
  from: number
  to: number
}

/** Stacks of all phases; the highest one has the height 1. */
export function stackPhases(phases: readonly PhaseColumn[], columns: number): { blocks: Block[]; highest: number } {
  const totals = Array.from({ length: columns }, (_, column) =>
    phases.reduce((sum, phase) => sum + (phase.seconds[column] ?? 0), 0),
  )
  const highest = Math.max(0, ...totals)
  if (highest === 0) return { blocks: [], highest }
  const blocks: Block[] = []
  for (let column = 0; column < columns; column++) {
    let from = 0
    for (const { phase, seconds } of phases) {
      const to = from + (seconds[column] ?? 0) / highest
      if (to > from) blocks.push({ phase, column, from, to })
      from = to
    }
  }
  return { blocks, highest }
}

/** [seconds, responses in progress from then on], in order. */
export function countInProgress(responses: readonly { start_s: number; end_s: number }[]): [number, number][] {
  const changes = responses.flatMap(({ start_s, end_s }): [number, number][] => [
    [start_s, 1],
    [end_s, -1],
  ])
  changes.sort((a, b) => a[0] - b[0] || b[1] - a[1])
  let count = 0
  const found: [number, number][] = []
  for (const [at, change] of changes) {
    count += change
    const last = found.at(-1)
    if (last?.[0] === at) last[1] = count
    else found.push([at, count])
  }
  return found
}

/**
 * The area under values that each hold until the next one, the last until `end`, as the path of an SVG.
 *
 * `toX` places a moment, `toY` a value; the area stands on `toY(0)`.
 */
export function stairs(
  at: readonly number[],
  values: readonly number[],
  end: number,
  toX: (seconds: number) => number,
  toY: (value: number) => number,
): string {
  if (at.length === 0) return ''
  const x = (seconds: number) => formatFixed(toX(seconds), 3)
  const y = (value: number) => formatFixed(toY(value), 2)
  const steps = at.map((moment, place) => `H${x(moment)}V${y(values[place] ?? 0)}`)
  return `M${x(at[0] ?? 0)} ${y(0)}${steps.join('')}H${x(end)}V${y(0)}Z`
}

/** Whether requests queue for so much of the time that the engine's limits hold up generation. */
export function hasQueue(limit: NonNullable<Timing['bottleneck']>): boolean {
  return limit.group === 'generation' && (limit.queued_share ?? 0) >= 0.25
}

/** Whether a few long responses hold up the others. */
export function hasLongTail(limit: NonNullable<Timing['bottleneck']>): boolean {
  return limit.group === 'generation' && ((limit.longest_response ?? 0) >= 3 || (limit.tail_share ?? 0) >= 0.3)
}

/** The colours of `known` phases, and for those that only single processes have, the colour of their group. */
export function laneColors(
  groups: Readonly<Record<string, string>>,
  known: ReadonlyMap<string, string>,
  series: readonly string[],
  plain: string,
): Map<string, string> {
  return new Map(
    Object.entries(groups).map(([phase, group]) => [phase, known.get(phase) ?? groupColor(group, series, plain)]),
  )
}

/** What a lane's process does, and which of them it is: `agent_loop 1`. */
export function splitName(name: string): { kind: string; number: number | null } {
  const [, kind = name, number] = /^(.*) (\d+)$/.exec(name) ?? []
  return { kind, number: number === undefined ? null : Number(number) }
}

/** Lanes by the node on which their processes run, in the order in which they come; null where that is not known. */
export function groupByNode(lanes: readonly Lane[]): { node: string | null; lanes: Lane[] }[] {
  const found = new Map<string | null, Lane[]>()
  for (const lane of lanes) {
    const node = lane.place?.node ?? null
    const own = found.get(node)
    if (own === undefined) found.set(node, [lane])
    else own.push(lane)
  }
  return [...found].map(([node, own]) => ({ node, lanes: own }))
}

/** Seconds in which there is any span. */
export function coveredSeconds(spans: readonly Pick<Span, 'start_s' | 'end_s'>[]): number {
  let total = 0
  let until = -Infinity
  for (const { start_s: start, end_s: end } of spans.toSorted((a, b) => a.start_s - b.start_s)) {
    total += Math.max(0, end - Math.max(start, until))
    until = Math.max(until, end)
  }
  return total
}

/** Seconds of each phase of a lane, in the order in which they begin, and the rest of a step of `duration` seconds. */
export function addUpLane(spans: readonly Span[], duration: number): { phases: Map<string, number>; rest: number } {
  const phases = new Map<string, Span[]>()
  for (const span of spans) phases.set(span.phase, [...(phases.get(span.phase) ?? []), span])
  return {
    phases: new Map([...phases].map(([phase, own]) => [phase, coveredSeconds(own)])),
    rest: Math.max(0, duration - coveredSeconds(spans)),
  }
}
