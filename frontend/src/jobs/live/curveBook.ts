/** The curves of one run: loaded from the server key by key, continued by the stream. */
import { type Curve, type CurvePoint, emptyCurve, mergePoints } from '@/charts/curve'

import type { MetricSeries, StreamEvents } from '../types'

type Odd = 'nan' | 'inf' | '-inf'

const ODD_VALUES: Record<Odd, number> = { nan: NaN, inf: Infinity, '-inf': -Infinity }

export interface LatestValue {
  step: number
  value: number
}

export interface CurveBook {
  /** Curves that were asked for; those still being loaded hold what the stream brought meanwhile. */
  readonly curves: ReadonlyMap<string, Curve>
  /** Newest value of every metric that was ever seen, asked for or not. */
  readonly latest: ReadonlyMap<string, LatestValue>
  /** Keys of `keys` that were not asked for before; the caller loads them and calls `fill`. */
  claim: (keys: readonly string[]) => string[]
  /** Undoes a claim whose loading failed. */
  release: (keys: readonly string[]) => void
  fill: (series: readonly MetricSeries[]) => void
  note: (key: string, latest: LatestValue) => void
  /** Keeps a streamed step for the next flush. */
  append: (reported: StreamEvents['metrics']) => void
  /** Puts what was appended into the curves; false when there was nothing. */
  flush: () => boolean
  clear: () => void
}

/** A server series as a curve, with what JSON cannot say put back in. */
export function toCurve(series: MetricSeries): Curve {
  const odd = new Map(series.non_finite.map((point) => [point.step, ODD_VALUES[point.value]]))
  const curve: Curve = {
    steps: [...series.steps],
    values: series.values.map((value, index) => value ?? odd.get(series.steps[index] ?? -1) ?? NaN),
  }
  return series.is_downsampled ? { ...curve, width: series.stretch_steps } : curve
}

export function createCurveBook(): CurveBook {
  const curves = new Map<string, Curve>()
  const latest = new Map<string, LatestValue>()
  /** Streamed points that have not been merged yet, by key. */
  const pending = new Map<string, CurvePoint[]>()
  /** Keys whose points so far are not here yet. */
  const loading = new Set<string>()

  function note(key: string, value: LatestValue): void {
    const known = latest.get(key)
    if (known === undefined || value.step >= known.step) latest.set(key, value)
  }

  function append(reported: StreamEvents['metrics']): void {
    for (const [key, raw] of Object.entries(reported.values)) {
      const odd = reported.non_finite?.[key]
      const value = raw ?? (odd === undefined ? NaN : ODD_VALUES[odd])
      // A resumed run takes up its steps further back: what it says last is the latest.
      latest.set(key, { step: reported.step, value })
      if (!curves.has(key)) continue
      const points = pending.get(key)
      const point = { step: reported.step, value }
      if (points === undefined) pending.set(key, [point])
      else points.push(point)
    }
  }

  function flush(): boolean {
    let hasChanged = false
    for (const [key, points] of pending) {
      const curve = curves.get(key)
      if (curve === undefined || loading.has(key)) continue
      mergePoints(curve, points)
      pending.delete(key)
      hasChanged = true
    }
    return hasChanged
  }

  return {
    curves,
    latest,
    note,
    append,
    flush,
    claim(keys) {
      const fresh = keys.filter((key) => !curves.has(key))
      for (const key of fresh) {
        curves.set(key, emptyCurve())
        loading.add(key)
      }
      return fresh
    },
    release(keys) {
      for (const key of keys) {
        if (!loading.delete(key)) continue
        curves.delete(key)
        pending.delete(key)
      }
    },
    fill(series) {
      for (const one of series) {
        curves.set(one.key, toCurve(one))
        loading.delete(one.key)
      }
    },
    clear() {
      curves.clear()
      latest.clear()
      pending.clear()
      loading.clear()
    },
  }
}
