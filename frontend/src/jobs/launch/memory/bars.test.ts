import { describe, expect, it } from 'vitest'

import type { MemoryEstimate } from '../../types'
import { barsOf, partNames, scaleOf } from './bars'

const text = { en: 'x', zh: 'x' }

function part(name: string, bytes: number) {
  return { name, title: text, bytes, how: text }
}

const estimate: MemoryEstimate = {
  parameters: 10,
  peak_phase: 'update',
  peak_bytes: 80,
  per_gpu_bytes: 80,
  available_bytes: 100,
  assumptions: [],
  warnings: [],
  phases: [
    {
      name: 'generation',
      title: text,
      total_bytes: 50,
      parts: [part('weights', 30), part('kv_cache', 20), part('optimizer', 0)],
    },
    { name: 'update', title: text, total_bytes: 80, parts: [part('weights', 30), part('optimizer', 50)] },
  ],
}

describe('the bars of a memory estimate', () => {
  it('lie on one scale, up to what is there', () => {
    expect(scaleOf(estimate)).toBe(100)
    expect(barsOf(estimate).map((bar) => bar.segments.map((segment) => segment.share))).toEqual([
      [0.3, 0.2],
      [0.3, 0.5],
    ])
  })

  it('go beyond what is there where the estimate does', () => {
    expect(scaleOf({ ...estimate, available_bytes: 40 })).toBe(80)
    expect(scaleOf({ ...estimate, available_bytes: null })).toBe(80)
  })

  it('give a part the same colour in every phase and mark the peak', () => {
    expect(partNames(estimate).map((one) => one.name)).toEqual(['weights', 'kv_cache', 'optimizer'])
    expect(barsOf(estimate).map((bar) => [bar.isPeak, bar.segments.map((segment) => segment.color)])).toEqual([
      [false, [0, 1]],
      [true, [0, 2]],
    ])
  })
})
