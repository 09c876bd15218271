import { describe, expect, it } from 'vitest'
import { createMemoryHistory, createRouter, type RouteLocationNormalized } from 'vue-router'

import { dryRunLink, readColumns, readQuery, type Rows } from './address'

const MATHS = [
  { name: 'math', weight: 0.8, options: {} },
  { name: 'format', weight: 0.2, options: {} },
]
const ROWS: Rows = { dataset: 'ds_1', version: 'v2', split: 'dev', columns: { prompt: 'title', answer: 'a & b' } }

async function visit(recipe: string, rows: Rows, rewards: typeof MATHS): Promise<RouteLocationNormalized> {
  const routes = [{ path: '/rewards', name: 'rewards', component: {} }]
  const router = createRouter({ history: createMemoryHistory(), routes })
  await router.push(router.resolve(dryRunLink(recipe, rows, rewards)).fullPath)
  return router.currentRoute.value
}

describe('the link to a dry run', () => {
  it('carries rewards, rows and columns to the page', async () => {
    const { query } = await visit('grpo', ROWS, MATHS)

    expect(query).toMatchObject({ tab: 'dry-run', recipe: 'grpo' })
    expect(readQuery(query)).toEqual({ rewards: MATHS, sample: { ...ROWS, rows: 64, job: null, step: null } })
  })

  it('says nothing of what was not chosen', async () => {
    const { query } = await visit('grpo', { dataset: null, version: null, split: null, columns: {} }, [])

    expect(query).toEqual({ tab: 'dry-run', recipe: 'grpo' })
    expect(readQuery(query).rewards).toEqual([])
  })

  it('is not led astray by columns that are none', () => {
    expect(['', '{', '[]', '{"prompt": 1}', undefined].map(readColumns)).toEqual([{}, {}, {}, {}, {}])
  })
})
