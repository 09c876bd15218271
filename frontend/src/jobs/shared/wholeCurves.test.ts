import { afterEach, describe, expect, it, vi } from 'vitest'

import { api } from '@/api/client'

import { readWholeCurves } from './wholeCurves'

interface Query {
  keys: string[]
  from_step?: number
  to_step?: number
}

/** Answers as the server does, with at most 4 points a curve. */
function serve(lengths: Record<string, number>): Query[] {
  const asked: Query[] = []
  vi.spyOn(api, 'GET').mockImplementation(((_path: string, { params }: { params: { query: Query } }) => {
    const { keys, from_step: first = 0, to_step: last = Infinity } = params.query
    asked.push(params.query)
    const series = keys.map((key) => {
      const all = Array.from({ length: lengths[key] ?? 0 }, (_, step) => step).filter(
        (step) => step >= first && step <= last,
      )
      const steps =
        all.length <= 4 ? all : [0, 1, 2, 3].map((part) => all[Math.floor((part * (all.length - 1)) / 3)] ?? 0)
      return {
        key,
        steps,
        values: steps.map((step) => step / 2),
        non_finite: [],
        total_points: all.length,
        is_downsampled: all.length > 4,
        stretch_steps: 1,
      }
    })
    return Promise.resolve({ data: { series, last_event_id: 0 }, response: new Response() })
  }) as unknown as typeof api.GET)
  return asked
}

describe('the whole curves of a job', () => {
  afterEach(() => vi.restoreAllMocks())

  it('are read in parts where the server thins them out', async () => {
    serve({ long: 37, short: 3 })

    const found = await readWholeCurves('job_a', ['long', 'short'])

    expect(found.get('long')?.steps).toEqual(Array.from({ length: 37 }, (_, step) => step))
    expect(found.get('long')?.values[36]).toBe(18)
    expect(found.get('short')?.steps).toEqual([0, 1, 2])
  })

  it('of no metric are none, and ask for nothing', async () => {
    const asked = serve({})

    expect((await readWholeCurves('job_a', [])).size).toBe(0)
    expect(asked).toEqual([])
  })
})
