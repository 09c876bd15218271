import { describe, expect, it } from 'vitest'

import type { JobCreate } from '../types'
import { snippet } from './snippets'

const request: JobCreate = {
  name: "it's $HOME",
  recipe: 'grpo',
  preset: null,
  model: 'mdl_a',
  dataset: 'ds_a',
  params: { group_size: 4 },
  overrides: {},
  seed: 1,
  resources: { gpus: 1 },
  tags: [],
  priority: 0,
}

describe('the request for scripts', () => {
  it('as JSON holds what was chosen and no empty fields', () => {
    expect(JSON.parse(snippet('json', request, ''))).toEqual({
      name: "it's $HOME",
      recipe: 'grpo',
      model: 'mdl_a',
      dataset: 'ds_a',
      params: { group_size: 4 },
      seed: 1,
      resources: { gpus: 1 },
    })
  })

  it('as cURL keeps quotes and dollar signs from the shell', () => {
    const command = snippet('curl', request, 'http://localhost:8001')

    expect(command).toContain("<<'JSON'\n{")
    expect(command).toContain('"it\'s $HOME"')
    expect(command).toContain('http://localhost:8001/api/v1/jobs')
  })

  it('as YAML nests the parameters', () => {
    expect(snippet('yaml', request, '')).toContain('params:\n  group_size: 4\n')
  })
})
