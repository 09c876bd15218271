import { describe, expect, it } from 'vitest'

import { readParams } from '@/ui/schema/schema'

import { NO_SUGGESTIONS, suggestionsFor } from './suggestions'

const SUGGESTIONS = { columns: ['question'], judges: ['strict'], resources: ['swear words'] }

describe('what a text may be', () => {
  it.each([
    ['files', ['swear words']],
    ['benchmarks', ['swear words']],
    ['scorer', ['strict']],
    ['columns', ['question']],
    ['mark', []],
  ])('of %s is %j', (name, wanted) => {
    const [param] = readParams({ properties: { [name]: { type: 'array', items: { type: 'string' } } } })

    expect(param === undefined ? null : suggestionsFor(param, SUGGESTIONS)).toEqual(wanted)
    expect(param === undefined ? null : suggestionsFor(param, NO_SUGGESTIONS)).toEqual([])
  })
})
