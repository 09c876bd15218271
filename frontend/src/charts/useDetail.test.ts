import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'

import type { Stretch } from './detail'
import { useDetail } from './useDetail'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function follow(read: (stretch: Stretch) => Promise<string>) {
  const charted = ref('loss')
  const stretchIn = vi.fn(([low, high]: [number, number]) => ({ from: Math.floor(low), to: Math.ceil(high) }))
  const scope = effectScope()
  const found = scope.run(() => useDetail({ stretchIn, read, charted: () => charted.value }))
  if (found === undefined) throw new Error('the scope has ended')
  return { ...found, charted, stretchIn, end: () => scope.stop() }
}

it('places the lines once for all charts that say the same, and reads their stretch once', async () => {
  const read = vi.fn(() => Promise.resolve('curves'))
  const { detail, zoom, zoomTo, stretchIn, end } = follow(read)

  for (let chart = 0; chart < 20; chart += 1) zoomTo([1.5, 3.5])
  await vi.advanceTimersByTimeAsync(300)

  expect(stretchIn).toHaveBeenCalledTimes(1)
  expect(read).toHaveBeenCalledTimes(1)
  expect(detail.value).toEqual({ stretch: { from: 1, to: 4 }, found: 'curves' })
  expect(zoom.value).toEqual([1.5, 3.5])
  end()
})

it('reads other curves for the same stretch, and keeps what there is until they are there', async () => {
  let answers = 0
  const { detail, zoomTo, charted, end } = follow(() => Promise.resolve(String((answers += 1))))
  zoomTo([1, 3])
  await vi.advanceTimersByTimeAsync(300)

  charted.value = 'loss grad_norm'
  await nextTick()
  expect(detail.value?.found).toBe('1')
  await vi.advanceTimersByTimeAsync(300)
  expect(detail.value?.found).toBe('2')
  end()
})

it('asks again for a stretch that could not be read', async () => {
  const read = vi.fn(() => Promise.reject(new Error('gone')))
  const { detail, zoomTo, end } = follow(read)
  zoomTo([1, 3])
  await vi.advanceTimersByTimeAsync(300)
  expect(detail.value).toBeNull()

  zoomTo([1, 3])
  await vi.advanceTimersByTimeAsync(300)
  expect(read).toHaveBeenCalledTimes(2)
  end()
})
