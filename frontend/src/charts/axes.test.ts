import { describe, expect, it } from 'vitest'

import { goodness, listParameters, makeAxis, parameterAxis, wantsLog } from './axes'

describe('axes', () => {
  it('places a range of decades evenly on a log scale', () => {
    const axis = makeAxis('rate', [1e-6, 1e-5, 1e-4], String)
    expect(axis.place(1e-5)).toBeCloseTo(0.5)
    expect(axis.ticks).toHaveLength(3)
  })
  it('stays linear for a narrow range and for zero', () => {
    expect(wantsLog([1, 10])).toBe(false)
    expect(wantsLog([0, 100])).toBe(false)
    expect(makeAxis('n', [2, 4, 6], String).place(4)).toBeCloseTo(0.5)
  })
  it('places words in the order in which they came, and a single value in the middle', () => {
    const axis = makeAxis('kind', ['b', 'a', 'b'], String)
    expect([axis.place('b'), axis.place('a'), axis.place('c')]).toEqual([0, 1, null])
    expect(makeAxis('one', [3], String).place(3)).toBe(0.5)
  })
  it('of a list shows as many words as can be read, and lists that read the same once', () => {
    expect(
      makeAxis(
        'name',
        Array.from({ length: 20 }, (_, index) => `n${index}`),
        String,
      ).ticks,
    ).toHaveLength(10)
    expect(makeAxis('targets', [['q'], ['q'], ['v']], String).ticks.map((tick) => tick.at)).toEqual([0, 1])
  })
  it('of a parameter leave out runs that do not have it', () => {
    const rows = [
      { id: 0, label: 'a', values: { rank: 8 }, value: 1 },
      { id: 1, label: 'b', values: { rank: 16, alpha: 1 }, value: 2 },
    ]
    expect(listParameters(rows)).toEqual(['rank', 'alpha'])
    expect([parameterAxis('alpha', rows).place(undefined), parameterAxis('alpha', rows).place(1)]).toEqual([null, 0.5])
  })
  it('calls the best one 1 whichever way is up', () => {
    expect([
      goodness(1, [1, 3], 'min'),
      goodness(3, [1, 3], 'min'),
      goodness(3, [1, 3], 'max'),
      goodness(2, [2, 2], 'min'),
    ]).toEqual([1, 0, 1, 1])
  })
})
