/** Metrics that mean the same on training and on held-out rows, so that one chart can show both. */

/** Prefixes by which engines tell the two apart: verl writes `train/loss` and `val/loss`, TRL `loss` and `eval_loss`. */
const TRAINING = /^train[/_]/
const EVALUATION = /^(?:eval[/_]|val\/)/
/** The same on held-out rows before the first step: what training is compared with. */
const BASELINE = /^baseline\/(?:(?:untrained|bm25)\/)?/

export function isEvaluation(key: string): boolean {
  return EVALUATION.test(key)
}

/** As `is_validation` of the API (`jobs/metrics/direction.py`), whatever the engine writes. */
const HELD_OUT = /^(?:val|valid|validation|eval|test)(?:[-_/]|$)/

/** Whether a metric was measured on held-out rows, also where it has no counterpart of the same name in training. */
export function isHeldOut(key: string): boolean {
  return HELD_OUT.test(key)
}

export function isBaseline(key: string): boolean {
  return BASELINE.test(key)
}

/** The metric's name without the rows that it was measured on. */
export function stemOf(key: string): string {
  return key.replace(BASELINE, '').replace(EVALUATION, '').replace(TRAINING, '')
}

export interface MetricGroup {
  /** The first of its keys: the group's identity. */
  key: string
  /** The name that both share; the key itself where there is only one. */
  title: string
  keys: string[]
}

/** One group for each chart: training first, then what it is compared with, if the run reports it. */
export function groupKeys(shown: readonly string[], reported: readonly string[]): MetricGroup[] {
  const groups = new Map<string, MetricGroup>()
  for (const key of shown) {
    const stem = stemOf(key)
    const same = reported.filter((one) => stemOf(one) === stem)
    const training = same.find((one) => !isEvaluation(one) && !isBaseline(one))
    const found = [training, same.find(isEvaluation), ...same.filter(isBaseline)].flatMap((one) => one ?? [])
    const keys = found.length > 1 ? found : [key]
    const id = keys[0] ?? key
    if (!groups.has(id)) groups.set(id, { key: id, title: keys.length > 1 ? stem : key, keys })
  }
  return [...groups.values()]
}
