import { expect, it } from 'vitest'

import { createLiveClock } from './liveClock'

const step = (number: number, seconds: number) => ({
  step: number,
  values: { loss: 1, 'timing_s/step': seconds },
  non_finite: {},
})
const told = (steps: number[], elapsed: number[]) => ({ steps, elapsed_s: elapsed, at: null, tokens: null })

it('goes on with every step that arrives, from the sums of the server', () => {
  const clock = createLiveClock()
  expect(clock.read()).toBeNull()

  clock.fill(told([1, 100], [31, 2000]))
  expect([clock.append(step(100, 9)), clock.append(step(101, 31)), clock.append(step(102, 1))]).toEqual([
    false,
    true,
    true,
  ])

  expect([100, 101, 102].map((one) => clock.read()?.(one))).toEqual([2000, 2031, 2032])
  expect(clock.lastStep()).toBe(102)
})

it('keeps what arrived while it was read, and nothing of steps that run again', () => {
  const clock = createLiveClock()
  clock.append(step(51, 2))
  clock.fill(told([1, 50], [1, 50]))
  expect(clock.read()?.(51)).toBe(52)

  clock.restart()
  clock.append(step(41, 7))
  clock.fill(told([1, 40], [1, 40]))
  expect([clock.lastStep(), clock.read()?.(41)]).toEqual([41, 47])
})

it('begins with the stream where the run has no clock yet, and stays short', () => {
  const clock = createLiveClock()
  clock.fill(null)
  for (let one = 1; one <= 9_000; one++) clock.append(step(one, one % 10 === 0 ? 11 : 1))

  expect(clock.read()?.(9_000)).toBe(18_000)
  expect(clock.read()?.(4_500)).toBeCloseTo(9_000, -2)
})
