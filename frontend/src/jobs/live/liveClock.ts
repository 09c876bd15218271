/** Seconds of training up to the steps of a run: as the server summed them up, continued by the stream. */
import { columnClock, type Clock } from '../shared/stepClock'
import { STEP_TIME_KEYS } from '../shared/metricCatalogue'
import type { StepClock, StreamEvents } from '../types'

/** Durations that may arrive while a clock is read. */
const KEPT = 1_000
/** A clock that has grown longer than this drops every second step. */
const MOST_STEPS = 4_000

interface LiveClock {
  /** Replaces what there is. */
  fill: (clock: StepClock | null) => void
  /** True where the step goes on the clock; one that is known already, or runs again, changes nothing. */
  append: (reported: StreamEvents['metrics']) => boolean
  /** Forgets what arrived so far: another attempt runs some steps again. */
  restart: () => void
  /** Null before anything is known. */
  read: () => Clock | null
  lastStep: () => number
}

export function createLiveClock(): LiveClock {
  let steps: number[] = []
  let seconds: number[] = []
  const recent: [number, number][] = []

  function put(step: number, duration: number): boolean {
    const last = steps.at(-1)
    if (last !== undefined && step <= last) return false
    // A trainer that reports every tenth step tells the mean of the ten.
    seconds.push((seconds.at(-1) ?? 0) + duration * (last === undefined ? 1 : step - last))
    steps.push(step)
    if (steps.length > MOST_STEPS) {
      const isKept = (_: number, index: number) => index % 2 === 0 || index === steps.length - 1
      ;[steps, seconds] = [steps.filter(isKept), seconds.filter(isKept)]
    }
    return true
  }

  return {
    fill(clock) {
      const known = clock?.steps.flatMap((step, index): [number, number][] => {
        const value = clock.elapsed_s?.[index] ?? null
        return value === null ? [] : [[step, value]]
      })
      steps = known?.map(([step]) => step) ?? []
      seconds = known?.map(([, value]) => value) ?? []
      for (const [step, duration] of recent) put(step, duration)
    },
    append({ step, values }) {
      const key = STEP_TIME_KEYS.find((one) => typeof values[one] === 'number')
      const duration = key === undefined ? null : (values[key] ?? null)
      if (duration === null) return false
      recent.push([step, duration])
      if (recent.length > KEPT) recent.shift()
      return put(step, duration)
    },
    restart() {
      recent.length = 0
    },
    read: () => columnClock(steps, seconds),
    lastStep: () => steps.at(-1) ?? 0,
  }
}
