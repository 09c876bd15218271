import { describe, expect, it } from 'vitest'

import type { RewardKind, RewardTerm } from '../types'
import { freeKinds, mixtureRange, moveTerm, newTerm, readTerms, setOption, writeTerms } from './terms'

const text = { en: 'x', zh: 'x' }

function kindOf(name: string, lowest: number | null, highest: number | null): RewardKind {
  const option = {
    name: 'free_length',
    type: 'int',
    default: 1000,
    title: text,
    help: text,
    unit: null,
    minimum: 1,
    maximum: null,
    exclusive_minimum: null,
    choices: [],
    can_be_empty: false,
    advanced: false,
    group: 'run',
    engine_keys: [],
    source: null,
    is_multiline: false,
    is_required: false,
  } as const
  return {
    name,
    title: text,
    help: text,
    lowest,
    highest,
    needs_answer: false,
    runs_code: false,
    waits: false,
    unavailable: null,
    options: [{ ...option, choices: [], engine_keys: [] }],
    params_schema: {},
  }
}

const math = kindOf('math', 0, 1)
const length = kindOf('length', -1, 0)
const model = kindOf('reward_model', null, null)

function term(name: string, part: Partial<RewardTerm> = {}): RewardTerm {
  return { name, weight: 1, options: {}, ...part }
}

describe('a mixture of rewards', () => {
  it('offers every kind once', () => {
    expect(freeKinds([math, length], [newTerm(math)])).toEqual([length])
  })

  it('is put in another order, within its ends', () => {
    const terms = [term('math'), term('length')]

    expect(moveTerm(terms, 1, 0).map((one) => one.name)).toEqual(['length', 'math'])
    expect(moveTerm(terms, 0, -1)).toEqual(terms)
    expect(moveTerm(terms, 1, 2)).toEqual(terms)
  })

  it('has the range of its weighted terms, a negative weight turned round', () => {
    expect(mixtureRange([math, length], [term('math'), term('length', { weight: 0.5 })])).toEqual([-0.5, 1])
    expect(mixtureRange([math], [term('math', { weight: -2 })])).toEqual([-2, 0])
    expect(mixtureRange([math, model], [term('math'), term('reward_model')])).toBeNull()
  })

  it('says only what differs from the defaults', () => {
    const changed = setOption(term('length'), length, 'free_length', 20)

    expect(changed.options).toEqual({ free_length: 20 })
    expect(setOption(changed, length, 'free_length', 1000).options).toEqual({})
  })

  it('travels in an address', () => {
    const terms = [term('math', { weight: 0.5 }), term('length', { options: { free_length: 20 } })]

    expect(readTerms(writeTerms(terms))).toEqual(terms)
  })

  it.each([
    [undefined],
    [''],
    ['[]'],
    ['{"name": "math"}'],
    ['[{"weight": 1}]'],
    ['[{"name": "math", "weight": "1"}]'],
    ['nonsense'],
  ])('is not read from %j', (value) => {
    expect(readTerms(value)).toBeNull()
  })
})
