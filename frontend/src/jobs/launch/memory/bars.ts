/** A memory estimate as bars on one scale. */
import type { MemoryEstimate } from '../../types'

export type MemoryPhase = MemoryEstimate['phases'][number]
export type MemoryPart = MemoryPhase['parts'][number]

export interface Segment {
  part: MemoryPart
  /** Share of the whole scale, 0 to 1. */
  share: number
  /** The same part has the same colour in every phase. */
  color: number
}

export interface Bar {
  phase: MemoryPhase
  segments: Segment[]
  isPeak: boolean
}

/** The scale ends at what is there, or beyond it where the estimate is higher. */
export function scaleOf(estimate: MemoryEstimate): number {
  return Math.max(estimate.peak_bytes, estimate.available_bytes ?? 0, 1)
}

/** Names of the parts in the order in which they first come: their legend and their colours. */
export function partNames(estimate: MemoryEstimate): MemoryPart[] {
  const seen = new Map<string, MemoryPart>()
  for (const phase of estimate.phases)
    for (const part of phase.parts) if (part.bytes > 0 && !seen.has(part.name)) seen.set(part.name, part)
  return [...seen.values()]
}

export function barsOf(estimate: MemoryEstimate): Bar[] {
  const scale = scaleOf(estimate)
  const names = partNames(estimate).map((part) => part.name)
  return estimate.phases.map((phase) => ({
    phase,
    isPeak: phase.name === estimate.peak_phase,
    segments: phase.parts
      .filter((part) => part.bytes > 0)
      .map((part) => ({ part, share: part.bytes / scale, color: names.indexOf(part.name) })),
  }))
}
