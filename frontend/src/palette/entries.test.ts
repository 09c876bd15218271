import { describe, expect, it } from 'vitest'

import { type Entry, findRoute, findState, narrow } from './entries'
import en from './locales/en'
import zh from './locales/zh'

function entry(label: string, words?: string): Entry {
  return { id: label, label, words, run: () => undefined }
}

function paths(tree: object, above = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) =>
    typeof value === 'string' ? [`${above}${key}`] : paths(value as object, `${above}${key}.`),
  )
}

describe('entries of the command palette', () => {
  it('fit with every word, those that begin with the first word come first', () => {
    const all = [entry('Import data'), entry('Playground', 'ship data'), entry('Data pipelines'), entry('Jobs')]

    expect(narrow(all, ' DATA ').map(({ label }) => label)).toEqual(['Data pipelines', 'Import data', 'Playground'])
    expect(narrow(all, 'data ship').map(({ label }) => label)).toEqual(['Playground'])
    expect(narrow(all, '')).toHaveLength(4)
  })

  it('lead to the page of what was found', () => {
    expect(findRoute({ kind: 'job', id: 'job_aaaaaaaaaaaa' })).toEqual({
      name: 'job',
      params: { id: 'job_aaaaaaaaaaaa' },
    })
    expect(findRoute({ kind: 'endpoint', id: 'sums-7b' })).toEqual({ name: 'playground', query: { m: 'sums-7b' } })
    expect(findRoute({ kind: 'named_model', id: 'support' })).toEqual({
      name: 'named-model',
      params: { name: 'support' },
    })
    expect(findRoute({ kind: 'workflow', id: 'wfl_aaaaaaaaaaaa' })).toEqual({
      name: 'workflows',
      query: { open: 'wfl_aaaaaaaaaaaa' },
    })
  })

  it('show states that have a mark', () => {
    expect(findState({ kind: 'job', state: 'running' })).toEqual({ state: 'running', of: 'job' })
    expect(findState({ kind: 'pipeline', state: null })).toBeUndefined()
    expect(findState({ kind: 'dataset', state: 'something new' })).toBeUndefined()
  })

  it('have their texts in both languages', () => {
    expect(paths(zh)).toEqual(paths(en))
  })
})
