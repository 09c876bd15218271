import { describe, expect, it } from 'vitest'

import { readParams } from '@/ui/schema/schema'

import type { Parameter } from '../types'
// `tests/recipes/test_parameter_schema.py` holds both parts to what the platform makes of them.
import examples from './param.examples.json'
import { paramOf } from './param'

describe('a parameter of a recipe', () => {
  it('is shown as its JSON Schema says, whatever its type', () => {
    const parameters = examples.parameters as Parameter[]

    expect(new Set(parameters.map(({ type }) => type)).size).toBe(8)
    expect(parameters.map(paramOf)).toEqual(readParams(examples.params_schema))
  })
})
