import { describe, expect, it } from 'vitest'

import type { Pipeline } from '../types'
import {
  callsModels,
  draftOf,
  emptyDraft,
  fieldOfProblem,
  judgesOf,
  moved,
  newStep,
  problemCount,
  problemsByField,
  readSteps,
  resourcesNamed,
  toPipeline,
  writeSteps,
} from './draft'
import { startingSteps } from './startingPoints'

const PIPELINE: Pipeline = {
  name: 'Tidy',
  description: '',
  format: null,
  columns: {},
  seed: 3,
  tokenizer: null,
  steps: [
    { operator: 'html', name: 'html', params: {} },
    { operator: 'html', name: 'html 2', params: { action: 'drop' } },
    { operator: 'quality', name: 'my scores', params: {} },
  ],
}

describe('the draft of a pipeline', () => {
  it('drops the names that the platform gave and keeps those that a person gave', () => {
    const draft = draftOf(PIPELINE)
    expect(draft.steps.map((step) => step.name)).toEqual([null, null, 'my scores'])
    expect(new Set(draft.steps.map((step) => step.key)).size).toBe(3)
    expect(toPipeline(draft, 'x').steps).toEqual([
      { operator: 'html', params: {} },
      { operator: 'html', params: { action: 'drop' } },
      { operator: 'quality', name: 'my scores', params: {} },
    ])
  })

  it('has a name in place of one that was not typed', () => {
    expect(toPipeline({ ...emptyDraft(), name: '  ' }, 'Pipeline').name).toBe('Pipeline')
  })

  it.each([
    [0, 2, 'bca'],
    [2, 0, 'cab'],
    [1, 1, 'abc'],
    [0, 3, 'abc'],
    [-1, 0, 'abc'],
    [5, 0, 'abc'],
  ])('moves the step at %i to %i', (from, to, wanted) => {
    expect(moved(['a', 'b', 'c'], from, to).join('')).toBe(wanted)
  })

  it('knows the judges and further inputs that it names', () => {
    const steps = [
      newStep('judge', { scorer: 'grader' }),
      newStep('judge', { scorer: 'grader' }),
      newStep('decontaminate', { benchmarks: ['gsm8k', 4] }),
      newStep('word_list', { files: ['swear words', 'gsm8k'] }),
    ]
    expect(judgesOf(steps)).toEqual(['grader'])
    expect(resourcesNamed(steps)).toEqual(['gsm8k', 'swear words'])
    expect(callsModels(steps)).toBe(true)
    expect(callsModels([newStep('semantic_duplicates', { source: 'endpoint' })])).toBe(true)
    expect(callsModels([newStep('quality')])).toBe(false)
  })

  it('travels in an address', () => {
    const steps = readSteps(writeSteps([newStep('filter_by_score', { minimum: 0.5 })]))
    expect(steps).toMatchObject([{ operator: 'filter_by_score', params: { minimum: 0.5 }, name: null }])
  })

  it.each(['', '{', '[]', '{"operator": "html"}', '[1]', '[{"operator": 1}]', '[{"operator": "html", "params": []}]'])(
    'takes nothing from the address %j',
    (text) => {
      expect(readSteps(text)).toBeNull()
    },
  )

  it('begins with steps of operators that are known', () => {
    expect(startingSteps('score', new Set(['quality'])).map((step) => step.operator)).toEqual(['quality'])
  })
})

describe('problems of a pipeline', () => {
  it.each([
    ['steps.2.params.threshold', 'steps.2.params.threshold'],
    ['steps.2.params.answer.literal', 'steps.2.params.answer'],
    ['steps.2.params', 'steps.2'],
    ['steps.2.operator', 'steps.2'],
    ['steps.2', 'steps.2'],
    ['steps', 'steps'],
    ['columns.prompt', 'columns'],
    ['name', 'name'],
    ['', ''],
  ])('that are at %s are told at %s', (field, wanted) => {
    expect(fieldOfProblem(field)).toBe(wanted)
  })

  it('are counted by step', () => {
    const problem = (field: string) => ({ step: null, field, code: 'param_invalid', message: 'no' })
    const issues = problemsByField([problem('steps.1.params.a'), problem('steps.1'), problem('steps.10.params.a')])
    expect(problemCount(issues, 1)).toBe(2)
    expect(problemCount(issues, 10)).toBe(1)
    expect(problemCount(issues, 0)).toBe(0)
    expect(issues.get('steps.1.params.a')?.[0]?.severity).toBe('error')
  })
})
