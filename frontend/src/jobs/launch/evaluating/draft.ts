/** What a job's checkpoints are to be measured on, while it is being put together. */
import { missingIn, type OrderDraft, toOrder } from '@/evaluations'

import type { Job, JobCreate } from '../../types'
import { orderDraft } from './fromOrder'

type Request = NonNullable<JobCreate['evaluate']>
export type Engine = NonNullable<Request['engine']>

export const CADENCES = ['steps', 'minutes', 'end'] as const
export type Cadence = (typeof CADENCES)[number]

/** Which score a rule looks at; the metric is null for the benchmark's headline. */
export interface ScoreChoice {
  label: string
  metric: string | null
  mode: 'max' | 'min'
}

export interface StopRule extends ScoreChoice {
  patience: number
  minDelta: number
}

export interface EvaluateDraft {
  /** Empty: the job is not evaluated. */
  orders: OrderDraft[]
  cadence: Cadence
  everySteps: number
  everyMinutes: number
  /** Besides the cadence; with the cadence `end` it is the only moment. */
  atEnd: boolean
  bestBy: ScoreChoice | null
  earlyStop: StopRule | null
  seed: number
  /** As the copied job had it; null leaves it to the platform. */
  engine: Engine | null
}

export function emptyEvaluate(): EvaluateDraft {
  return {
    orders: [],
    cadence: 'steps',
    everySteps: 100,
    everyMinutes: 30,
    atEnd: true,
    bestBy: null,
    earlyStop: null,
    seed: 0,
    engine: null,
  }
}

/** A scale of its own, so that a label is found under the name that the platform gives it. */
const LONGEST_LABEL = 64

/** The labels that the orders will have: their own, else the benchmark's name with a number where it is taken. */
export function labelsOf(orders: readonly OrderDraft[]): string[] {
  const taken = new Set(orders.map((order) => order.label).filter((label) => label !== ''))
  return orders.map((order) => {
    if (order.label !== '') return order.label
    const name =
      order.benchmark === 'harness' ? order.task.trim().toLowerCase().slice(0, LONGEST_LABEL) : order.benchmark
    let label = name
    for (let number = 2; taken.has(label); number++) label = `${name.slice(0, LONGEST_LABEL - 4)}-${number}`
    taken.add(label)
    return label
  })
}

/** Whether every benchmark can run as it stands. */
export function isComplete({ orders }: EvaluateDraft): boolean {
  return orders.every((order) => missingIn(order, orders) === null)
}

/** A rule of a benchmark that is gone, or has another name now, is none. */
function ruleOf<T extends ScoreChoice>(rule: T | null, labels: readonly string[]): T | null {
  return rule !== null && labels.includes(rule.label) ? rule : null
}

/** The job's wish; null where it is not evaluated. */
export function toEvaluate(draft: EvaluateDraft): Request | null {
  if (draft.orders.length === 0) return null
  const labels = labelsOf(draft.orders)
  const bestBy = ruleOf(draft.bestBy, labels)
  // Only what is measured again and again can stand still.
  const earlyStop = draft.cadence === 'end' ? null : ruleOf(draft.earlyStop, labels)
  return {
    benchmarks: draft.orders.map((order, index) => ({ ...toOrder(order), label: labels[index] })),
    every_steps: draft.cadence === 'steps' ? draft.everySteps : null,
    every_minutes: draft.cadence === 'minutes' ? draft.everyMinutes : null,
    at_end: draft.cadence === 'end' || draft.atEnd,
    seed: draft.seed,
    ...(draft.engine === null ? {} : { engine: draft.engine }),
    best_by: bestBy === null ? null : { ...bestBy },
    early_stop:
      earlyStop === null
        ? null
        : {
            label: earlyStop.label,
            metric: earlyStop.metric,
            mode: earlyStop.mode,
            patience: earlyStop.patience,
            min_delta: earlyStop.minDelta,
          },
  }
}

/** The draft that asks for the same as a job did. */
export function evaluateOfJob(job: Pick<Job, 'evaluate'>): EvaluateDraft {
  const asked = job.evaluate
  const draft = emptyEvaluate()
  if (asked === null) return draft
  const { best_by: best, early_stop: stop } = asked
  return {
    ...draft,
    orders: asked.benchmarks.map((order, index) => orderDraft(order, index + 1)),
    cadence: asked.every_steps != null ? 'steps' : asked.every_minutes != null ? 'minutes' : 'end',
    everySteps: asked.every_steps ?? draft.everySteps,
    everyMinutes: asked.every_minutes ?? draft.everyMinutes,
    atEnd: asked.at_end,
    seed: asked.seed,
    engine: asked.engine ?? null,
    bestBy: best == null ? null : { label: best.label, metric: best.metric ?? null, mode: best.mode },
    earlyStop:
      stop == null
        ? null
        : {
            label: stop.label,
            metric: stop.metric ?? null,
            mode: stop.mode,
            patience: stop.patience,
            minDelta: stop.min_delta,
          },
  }
}
