import { describe, expect, it } from 'vitest'

import {
  type EvaluationDraft,
  missingIn,
  newDraft,
  newOrder,
  type OrderDraft,
  toOrder,
  toRequest,
  withSamples,
} from './draft'
import { newScorer, SCORER_KINDS, toScorer } from './scorer'

function order(benchmark: OrderDraft['benchmark'], changes: Partial<OrderDraft> = {}, key = 1): OrderDraft {
  return { ...newOrder(benchmark, key), ...changes }
}

function draft(changes: Partial<EvaluationDraft>): EvaluationDraft {
  return { ...newDraft(), ...changes }
}

describe('the order of a benchmark', () => {
  it('names what its kind knows and nothing else', () => {
    const common = ['benchmark', 'chat', 'decoding', 'label', 'limit', 'shots', 'system']
    const own = {
      gsm8k: [],
      math500: ['levels', 'types'],
      humaneval: ['k', 'memory_mb', 'samples', 'timeout_s'],
      mmlu: ['mode', 'subjects'],
      harness: ['task'],
    } as const

    for (const [benchmark, fields] of Object.entries(own)) {
      expect(Object.keys(toOrder(order(benchmark as OrderDraft['benchmark']))).sort()).toEqual(
        [...common, ...fields].sort(),
      )
    }
  })

  it('takes no choice of groups for all of them', () => {
    expect(toOrder(order('math'))).toMatchObject({ levels: null, types: null })
    expect(toOrder(order('math', { levels: [5, 4], groups: ['Algebra'] }))).toMatchObject({
      levels: [4, 5],
      types: ['Algebra'],
    })
    expect(toOrder(order('mmlu', { groups: ['astronomy'] }))).toMatchObject({ subjects: ['astronomy'] })
  })

  it('samples nothing where likelihoods are compared', () => {
    const warm = { temperature: 0.8, topP: 0.9, maxTokens: 64 }

    expect(toOrder(order('mmlu', warm)).decoding).toEqual({ temperature: 0, top_p: 1, max_tokens: null })
    expect(toOrder(order('mmlu', { ...warm, mode: 'generate' })).decoding).toEqual({
      temperature: 0.8,
      top_p: 0.9,
      max_tokens: 64,
    })
  })

  it('has a system message only with a chat template', () => {
    expect(toOrder(order('gsm8k', { system: 'Be brief.' })).system).toBe('Be brief.')
    expect(toOrder(order('gsm8k', { system: 'Be brief.', chat: 'never' })).system).toBeNull()
  })

  it('takes the prompt from a template instead of a column', () => {
    const columns = { dataset: 'ds_1', promptColumn: 'question', answerColumn: 'answer' }

    expect(toOrder(order('custom', columns))).toMatchObject({
      columns: { prompt: 'question', answer: 'answer' },
      template: null,
    })
    expect(toOrder(order('custom', { ...columns, template: 'Q: {question}' }))).toMatchObject({
      columns: { answer: 'answer' },
      template: 'Q: {question}',
    })
  })
})

describe('what is missing', () => {
  it('is a task that can be a name, a dataset, what the scorer needs', () => {
    expect(missingIn(order('harness', { task: 'arc easy' }), [])).toBe('task')
    expect(missingIn(order('harness', { task: ' arc_easy ' }), [])).toBeNull()
    expect(missingIn(order('custom'), [])).toBe('dataset')
    expect(missingIn(order('custom', { dataset: 'ds_1', scorer: { ...newScorer(), kind: 'regex' } }), [])).toBe(
      'pattern',
    )
    expect(
      missingIn(
        order('custom', { dataset: 'ds_1', scorer: { ...newScorer(), kind: 'json', equalsAnswer: false } }),
        [],
      ),
    ).toBe('json')
    expect(missingIn(order('custom', { dataset: 'ds_1' }), [])).toBeNull()
  })

  it('is a k for which there are enough samples', () => {
    expect(missingIn(order('humaneval', { samples: 4, k: [1, 5] }), [])).toBe('k')
    expect(missingIn(order('humaneval', { samples: 5, k: [1, 5], temperature: 0.8 }), [])).toBeNull()
    expect(missingIn(order('humaneval', { k: [] }), [])).toBe('k')
  })

  it('is a temperature where many programs are asked for, which comes with them', () => {
    expect(missingIn(order('humaneval', { samples: 5 }), [])).toBe('greedy')

    const many = { ...order('humaneval', { k: [1, 10] }), ...withSamples(order('humaneval', { k: [1, 10] }), 5) }

    expect(many).toMatchObject({ samples: 5, k: [1], temperature: 0.8 })
    expect(missingIn(many, [])).toBeNull()
    expect(withSamples(order('humaneval', { temperature: 0.2 }), 5).temperature).toBe(0.2)
    expect(withSamples(order('humaneval'), 1).temperature).toBe(0)
  })

  it('is a label of its own', () => {
    const [first, second] = [order('gsm8k', { label: 'warm' }, 1), order('gsm8k', { label: 'warm' }, 2)]

    expect(missingIn(first, [first, second])).toBe('twice')
    expect(missingIn(order('gsm8k', { label: 'Warm' }), [])).toBe('label')
    expect(missingIn(first, [first, order('gsm8k', {}, 3)])).toBeNull()
  })
})

describe('the request', () => {
  it('is there once there are targets and whole benchmarks', () => {
    expect(toRequest(draft({ orders: [order('gsm8k')] }))).toBeNull()
    expect(toRequest(draft({ models: ['mdl_1'] }))).toBeNull()
    expect(toRequest(draft({ models: ['mdl_1'], orders: [order('gsm8k'), order('custom', {}, 2)] }))).toBeNull()
    expect(toRequest(draft({ models: ['mdl_1'], orders: [order('gsm8k')] }))).not.toBeNull()
  })

  it('names models first, then checkpoints, without what only the page knows', () => {
    const request = toRequest(
      draft({
        models: ['mdl_1'],
        checkpoints: [{ job: 'job_1', name: 'a run', step: 40 }],
        orders: [order('gsm8k')],
        name: '  ',
      }),
    )

    expect(request).toMatchObject({
      name: null,
      targets: [
        { kind: 'model', model: 'mdl_1' },
        { kind: 'checkpoint', job: 'job_1', step: 40 },
      ],
    })
    expect(JSON.stringify(request)).not.toContain('a run')
  })
})

describe('scorers', () => {
  it('are all made with their kind and without the fields of others', () => {
    for (const kind of SCORER_KINDS) expect(toScorer({ ...newScorer(), kind }).kind).toBe(kind)
    expect(toScorer({ ...newScorer(), kind: 'math', judge: 'gpt', pattern: 'x' })).toEqual({ kind: 'math' })
    expect(toScorer({ ...newScorer(), kind: 'rougeL', threshold: 0.4 })).toEqual({ kind: 'rougeL', threshold: 0.4 })
  })
})
