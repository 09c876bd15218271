import { expect, it } from 'vitest'
import { shallowRef } from 'vue'

import { useZoom } from './useZoom'

function show(zoomedTo: [number, number] | null, option: object = {}) {
  const done: unknown[] = []
  const told: unknown[] = []
  const chart = shallowRef({ dispatchAction: (action: unknown) => done.push(action), getOption: () => option })
  const zoom = useZoom(
    chart as never,
    () => ({ group: 'run', zoomedTo }),
    (range) => told.push(range),
  )
  return { ...zoom, done, told }
}

it('a chart that is shown later is zoomed as those of its group, which hear nothing of it', () => {
  const whole = show(null)
  whole.onRendered()
  expect(whole.done).toEqual([])

  const late = show([2, 5])
  late.onRendered()
  expect(late.done).toEqual([{ type: 'dataZoom', startValue: 2, endValue: 5, escapeConnect: true }])
})

it('a zoomed chart tells its range, and that it shows all again', () => {
  const part = show(null, { dataZoom: [{ start: 10, end: 50, startValue: 2, endValue: 5 }] })
  part.onZoom()
  expect([part.isZoomed.value, part.told]).toEqual([true, [[2, 5]]])

  const whole = show(null, { dataZoom: [{ start: 0, end: 100, startValue: 1, endValue: 9 }] })
  whole.onZoom()
  expect([whole.isZoomed.value, whole.told]).toEqual([false, [null]])
})
