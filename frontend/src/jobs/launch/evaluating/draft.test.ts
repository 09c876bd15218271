import { describe, expect, it } from 'vitest'

import { newOrder, newScorer, type OrderDraft, toOrder } from '@/evaluations'

import { emptyEvaluate, evaluateOfJob, isComplete, labelsOf, toEvaluate } from './draft'
import { orderDraft } from './fromOrder'

const gsm8k = newOrder('gsm8k', 1)

describe('the labels of benchmarks', () => {
  it('are those that the platform gives: a name that is taken gets a number', () => {
    const orders = [
      gsm8k,
      newOrder('gsm8k', 2),
      { ...newOrder('math', 3), label: 'gsm8k-2' },
      { ...newOrder('harness', 4), task: 'ARC_easy' },
    ]

    expect(labelsOf(orders)).toEqual(['gsm8k', 'gsm8k-3', 'gsm8k-2', 'arc_easy'])
  })
})

describe('what a job asks for', () => {
  it('is nothing without benchmarks', () => {
    expect(toEvaluate(emptyEvaluate())).toBeNull()
  })

  it('is a moment of one kind', () => {
    const draft = { ...emptyEvaluate(), orders: [gsm8k], everySteps: 50, everyMinutes: 5, atEnd: false }

    expect(toEvaluate(draft)).toMatchObject({ every_steps: 50, every_minutes: null, at_end: false })
    expect(toEvaluate({ ...draft, cadence: 'minutes' })).toMatchObject({
      every_steps: null,
      every_minutes: 5,
      at_end: false,
    })
    expect(toEvaluate({ ...draft, cadence: 'end' })).toMatchObject({
      every_steps: null,
      every_minutes: null,
      at_end: true,
    })
  })

  it('leaves out rules of benchmarks that are gone, and a stop where there is one moment only', () => {
    const rule = { label: 'gsm8k', metric: null, mode: 'max' as const }
    const draft = {
      ...emptyEvaluate(),
      orders: [gsm8k],
      bestBy: { ...rule, label: 'math' },
      earlyStop: { ...rule, patience: 2, minDelta: 0.01 },
    }

    expect(toEvaluate(draft)).toMatchObject({
      best_by: null,
      early_stop: { label: 'gsm8k', metric: null, patience: 2, min_delta: 0.01 },
    })
    expect(toEvaluate({ ...draft, cadence: 'end' })?.early_stop).toBeNull()
  })

  it('is not complete while a benchmark is not', () => {
    expect(isComplete({ ...emptyEvaluate(), orders: [gsm8k] })).toBe(true)
    expect(isComplete({ ...emptyEvaluate(), orders: [gsm8k, newOrder('custom', 2)] })).toBe(false)
  })

  it('is the same again when the job is copied', () => {
    const draft = {
      ...emptyEvaluate(),
      orders: [{ ...gsm8k, limit: 100, shots: 5 }],
      cadence: 'minutes' as const,
      everyMinutes: 2.5,
      bestBy: { label: 'gsm8k', metric: 'strict', mode: 'max' as const },
      earlyStop: { label: 'gsm8k', metric: null, mode: 'max' as const, patience: 4, minDelta: 0.02 },
      seed: 7,
    }
    const asked = toEvaluate(draft)
    if (asked === null) throw new Error('nothing was asked for')

    const engine = { max_model_len: 2048, dtype: 'auto' as const, tensor_parallel: 1, gpu_memory: 0.5 }
    const copy = evaluateOfJob({ evaluate: { ...asked, at_end: true, seed: 7, engine, stopped: null } as never })

    expect(toEvaluate(copy)).toEqual({ ...asked, engine })
    expect(evaluateOfJob({ evaluate: null })).toEqual(emptyEvaluate())
  })
})

describe('an order read back into its form', () => {
  const scorer = newScorer()
  const orders: OrderDraft[] = [
    {
      ...gsm8k,
      label: 'five',
      shots: 5,
      limit: 10,
      temperature: 0.6,
      topP: 0.9,
      maxTokens: 128,
      chat: 'always',
      system: 'Be brief.',
    },
    { ...newOrder('math', 1), levels: [1, 5], groups: ['Algebra'] },
    { ...newOrder('humaneval', 1), samples: 4, k: [1, 2], temperature: 0.8 },
    { ...newOrder('mmlu', 1), mode: 'generate', groups: ['astronomy'] },
    { ...newOrder('harness', 1), task: 'arc_easy' },
    ...(['exact', 'regex', 'numeric', 'math', 'choice', 'json', 'rougeL', 'judge', 'file'] as const).map((kind) => ({
      ...newOrder('custom', 1),
      dataset: 'ds_1',
      version: 'v1',
      split: 'test',
      template: '{q}',
      answerColumn: 'a',
      groupColumn: 'topic',
      scorer: {
        ...scorer,
        kind,
        pattern: 'x',
        choicesColumn: 'c',
        judge: 'gpt',
        file: 'rf_1',
        threshold: 0.7,
        tolerance: 0.1,
        schemaText: '{}',
        ignoreCase: true,
      },
    })),
  ]

  it.each(orders.map((order) => [`${order.benchmark} ${order.scorer.kind}`, order] as const))(
    'asks for the same: %s',
    (_, order) => {
      expect(toOrder(orderDraft(toOrder(order), 1))).toEqual(toOrder(order))
    },
  )
})
