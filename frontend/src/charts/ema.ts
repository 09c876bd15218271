/** Exponential moving average, corrected for its start, as TensorBoard smooths. */

/**
 * Smooths `values` with `weight` in [0, 1): 0 leaves them as they are.
 *
 * The running mean starts at 0 and is divided by 1 − weightⁿ (Adam's correction), so that the first points are not
 * drawn towards zero. A value that is not finite stays as it is and does not touch the mean.
 *
 * `gaps` tells how far each point lies from the one before (1 where absent): over a gap of g the mean fades by
 * weightᵍ. A metric measured every 50 steps is hardly smoothed then, and a thinned curve looks like the whole one.
 */
export function smooth(values: readonly number[], weight: number, gaps?: readonly number[]): number[] {
  if (weight <= 0) return [...values]
  let mean = 0
  let bias = 1
  let gap = 0
  return values.map((value, index) => {
    gap += gaps?.[index] ?? 1
    if (!Number.isFinite(value)) {
      // Without gaps, a missing value is as if it had not been; with them, time went by all the same.
      if (gaps === undefined) gap = 0
      return value
    }
    const kept = Math.pow(weight, gap)
    gap = 0
    mean = mean * kept + (1 - kept) * value
    bias *= kept
    return mean / (1 - bias)
  })
}
