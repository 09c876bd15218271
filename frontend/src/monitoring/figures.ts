/** What the figures of a node by name say, and which of them belong into one chart. */
import type { NodeSamples } from './types'

const GIB = 1024 ** 3
const MIB = 1024 ** 2

/** Numbers of the GPUs that a node has figures of. */
export function gpuNumbers(node: Pick<NodeSamples, 'figures'>): number[] {
  const found = Object.keys(node.figures).flatMap((name) => /^gpu(\d+)_/.exec(name)?.[1] ?? [])
  return [...new Set(found.map(Number))].sort((a, b) => a - b)
}

export interface FigureLine {
  /** The figure's own name. */
  id: string
  /** Locale key under monitoring.line. */
  label: string
  /** Of a GPU. */
  index?: number
}

export interface FigureChart {
  /** Locale key under monitoring.chart. */
  name: string
  unit: string
  /** What a figure is divided by for the unit. */
  scale: number
  lines: FigureLine[]
  /** The figure that says how much there is at most. */
  total?: string
  /** Highest value there can be, in the unit. */
  most?: number
}

function own(id: string, label: string): FigureLine {
  return { id, label }
}

/** Charts of a node: those with at least one figure. */
export function chartsOf(node: Pick<NodeSamples, 'figures'>): FigureChart[] {
  const gpus = gpuNumbers(node)
  const ofGpus = (figure: string) => gpus.map((index) => ({ id: `gpu${index}_${figure}`, label: 'gpu', index }))
  const all: FigureChart[] = [
    { name: 'cpu', unit: '%', scale: 1, lines: [own('cpu_percent', 'cpu')], most: 100 },
    {
      name: 'memory',
      unit: 'GiB',
      scale: GIB,
      lines: [own('memory_used_bytes', 'memory')],
      total: 'memory_total_bytes',
    },
    { name: 'gpuUse', unit: '%', scale: 1, lines: ofGpus('utilization_percent'), most: 100 },
    {
      name: 'gpuMemory',
      unit: 'GiB',
      scale: GIB,
      lines: ofGpus('memory_used_bytes'),
      total: `gpu${gpus[0] ?? 0}_memory_total_bytes`,
    },
    { name: 'gpuPower', unit: 'W', scale: 1, lines: ofGpus('power_watts') },
    { name: 'disk', unit: 'GiB', scale: GIB, lines: [own('disk_used_bytes', 'used')], total: 'disk_total_bytes' },
    {
      name: 'diskIo',
      unit: 'MiB/s',
      scale: MIB,
      lines: [own('disk_read_bytes_per_s', 'read'), own('disk_written_bytes_per_s', 'written')],
    },
    {
      name: 'network',
      unit: 'MiB/s',
      scale: MIB,
      lines: [own('network_received_bytes_per_s', 'received'), own('network_sent_bytes_per_s', 'sent')],
    },
  ]
  return all
    .map((chart) => ({
      ...chart,
      lines: chart.lines.filter((line) => node.figures[line.id]?.some((value) => value !== null)),
    }))
    .filter((chart) => chart.lines.length > 0)
}

/** The last value of a figure that was measured; null where none was. */
export function lastOf(node: Pick<NodeSamples, 'figures'>, figure: string): number | null {
  return node.figures[figure]?.findLast((value) => value !== null) ?? null
}

/** A figure as a share of another, in percent, entry by entry. */
export function shareOf(node: Pick<NodeSamples, 'figures'>, figure: string, total: string): (number | null)[] {
  const totals = node.figures[total]
  return (node.figures[figure] ?? []).map((value, index) => {
    const all = totals?.[index] ?? null
    return value === null || all === null || all === 0 ? null : (100 * value) / all
  })
}

/** A column with a place for each stretch of the range, NaN where none was measured: the axis is time, not the samples. */
export function spreadOverRange(
  at: readonly string[],
  column: readonly (number | null)[],
  range: { since: string; until: string; stretch_s: number },
): number[] {
  const since = Date.parse(range.since)
  const stretchMs = range.stretch_s * 1000
  const values = new Array<number>(Math.max(1, Math.round((Date.parse(range.until) - since) / stretchMs))).fill(NaN)
  at.forEach((moment, index) => {
    const place = Math.min(values.length - 1, Math.floor((Date.parse(moment) - since) / stretchMs))
    const value = column[index] ?? null
    if (place >= 0 && value !== null) values[place] = value
  })
  return values
}
