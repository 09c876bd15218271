import { describe, expect, it } from 'vitest'

import { noteOf, splitsOf, trickOf } from './probes'

const all = { scored: ['exact'], left_out: [], reason: null }
const some = { scored: ['format'], left_out: ['code'], reason: null }
const none = { scored: ['exact'], left_out: ['python'], reason: 'unbounded' as const }

describe('the probes of a run', () => {
  it('can be looked at where the rewards score them', () => {
    expect(splitsOf('train', all)).toEqual(['train', 'validation', 'probe'])
    expect(splitsOf('train', none)).toEqual(['train', 'validation'])
    expect(splitsOf('train', null)).toEqual(['train', 'validation'])
    expect(splitsOf('probe', null)).toContain('probe')
  })

  it('say beside the responses why there are none', () => {
    expect(noteOf('train', none)).toEqual({ key: 'unbounded', names: 'python' })
    expect(noteOf('validation', none)).toBeNull()
    expect(noteOf('train', some)).toBeNull()
  })

  it('say what they are, and which rewards they do without', () => {
    expect(noteOf('probe', all)).toEqual({ key: 'what', names: '' })
    expect(noteOf('probe', some)).toEqual({ key: 'without', names: 'code' })
  })

  it('are told apart by the trick', () => {
    expect(trickOf({ split: 'probe', group: 'format_only' })).toBe('format_only')
    expect(trickOf({ split: 'probe', group: 'later' })).toBeNull()
    expect(trickOf({ split: 'train', group: 'empty' })).toBeNull()
  })
})
