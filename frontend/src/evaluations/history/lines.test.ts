import { describe, expect, it } from 'vitest'

import { type HistoryPoint, itemsOf, letterOf, linesOf, placesOf, seriesOf } from './lines'

function measured(
  id: string,
  step: number | null,
  value: number,
  configuration = 'c1',
  metric = 'flexible',
): HistoryPoint {
  const isCheckpoint = step !== null
  return {
    generation: 0,
    evaluation_id: id,
    label: 'gsm8k',
    benchmark: 'gsm8k',
    dataset: null,
    configuration,
    target: isCheckpoint
      ? { kind: 'checkpoint', name: `run ${step}`, model: null, job: { id: 'job_1', name: 'run' }, step }
      : { kind: 'model', name: id, model: { id: `mdl_${id}`, name: id }, job: null, step: null },
    score: { metric, value, low: value - 0.1, high: value + 0.1, stderr: 0.05, method: 'wilson', n: 100 },
    created_at: '2026-01-01T00:00:00Z',
  }
}

const name = (configuration: string) => configuration
const target = (item: HistoryPoint) => item.target.name

describe('what was measured', () => {
  it('is offered once for each benchmark and metric', () => {
    const items = [measured('a', 10, 0.1), measured('a', 10, 0.05, 'c1', 'strict'), measured('b', 20, 0.2)]

    expect(seriesOf(items).map((one) => one.key)).toEqual(['gsm8k/flexible', 'gsm8k/strict'])
    expect(itemsOf(items, seriesOf(items)[0] ?? null)).toHaveLength(2)
    expect(itemsOf(items, null)).toEqual([])
  })
})

describe('one label on two datasets', () => {
  it('is two series, each with all versions of its dataset', () => {
    const on = (id: string, dataset: string, version: string) => ({
      ...measured(id, 10, 0.1),
      label: 'custom',
      benchmark: 'custom',
      dataset: { id: dataset, name: dataset, version, is_deleted: false },
    })
    const items = [on('a', 'ds_1', 'v1'), on('b', 'ds_2', 'v1'), on('c', 'ds_1', 'v2')]

    expect(seriesOf(items).map((one) => [one.dataset?.name, one.dataset?.version])).toEqual([
      ['ds_1', null],
      ['ds_2', null],
    ])
    expect(itemsOf(items, seriesOf(items)[0] ?? null).map((item) => item.evaluation_id)).toEqual(['a', 'c'])
  })
})

describe('the history of a job', () => {
  it('stands at the steps of its checkpoints, what was measured otherwise apart', () => {
    const lines = linesOf(
      [measured('a', 10, 0.1), measured('b', 20, 0.2), measured('c', 20, 0.5, 'c2')],
      'step',
      name,
      target,
    )

    expect(lines.map((line) => [line.id, line.points.map((point) => [point.x, point.id])])).toEqual([
      [
        'c1',
        [
          [10, 'a'],
          [20, 'b'],
        ],
      ],
      ['c2', [[20, 'c']]],
    ])
  })

  it('has no place for what is no checkpoint', () => {
    expect(linesOf([measured('base', null, 0.1)], 'step', name, target)).toEqual([])
  })
})

describe('the history of a model', () => {
  it('gives every version one place, however often it was measured', () => {
    const items = [measured('base', null, 0.1), measured('tuned', null, 0.3), measured('base', null, 0.12)]

    expect([...placesOf(items).values()]).toEqual([0, 1])
    expect(linesOf(items, 'order', name, target)[0]?.points.map((point) => point.x)).toEqual([0, 1, 0])
  })
})

describe('settings', () => {
  it('are told apart by letters', () => {
    expect([0, 25, 26].map(letterOf)).toEqual(['A', 'Z', '27'])
  })
})
