/** Places of moments on the axis of a run: the time itself, or the step that ran then. */

export interface StepTimes {
  steps: readonly number[]
  at: readonly string[]
  attempts: readonly number[]
}

/**
 * The step at a moment (milliseconds since 1970), with the part of it that had passed; null where no step ran: before
 * the first one, after the last one and between two attempts.
 */
export function stepClock(times: StepTimes): (moment: number) => number | null {
  const moments = times.at.map((at) => Date.parse(at))
  return (moment) => {
    let low = 0
    let high = moments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((moments[middle] ?? Infinity) < moment) low = middle + 1
      else high = middle
    }
    const after = moments[low]
    const step = times.steps[low]
    if (after === undefined || step === undefined) return null
    if (after === moment) return step
    const before = moments[low - 1]
    const stepBefore = times.steps[low - 1]
    if (before === undefined || stepBefore === undefined || times.attempts[low - 1] !== times.attempts[low]) return null
    return stepBefore + ((moment - before) / (after - before)) * (step - stepBefore)
  }
}

/** A column over time as a curve; what has no place or was not measured is left out. */
export function placeColumn(
  at: readonly string[],
  values: readonly (number | null)[],
  place: (moment: number) => number | null,
  scale: number,
) {
  const steps: number[] = []
  const found: number[] = []
  at.forEach((moment, index) => {
    const value = values[index] ?? null
    const x = value === null ? null : place(Date.parse(moment))
    if (value === null || x === null) return
    steps.push(x)
    found.push(value / scale)
  })
  return { steps, values: found }
}
