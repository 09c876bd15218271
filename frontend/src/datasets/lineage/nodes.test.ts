import { describe, expect, it } from 'vitest'

import { type DataNode, linesOf, pageOf } from './nodes'

function node(id: string, kind: DataNode['kind'], part: Partial<DataNode> = {}): DataNode {
  return {
    id,
    kind,
    name: id,
    exists: true,
    state: null,
    dataset: null,
    row_count: null,
    recipe: null,
    number: null,
    ...part,
  }
}

describe('a node of a lineage', () => {
  it.each([
    [node('job_1', 'job'), { name: 'job', params: { id: 'job_1' } }],
    [
      node('v', 'version', { dataset: 'ds_1' }),
      { name: 'dataset', params: { id: 'ds_1' }, query: { tab: 'versions', version: 'v' } },
    ],
    [node('dtk_1', 'task', { name: 'pipeline' }), { name: 'pipeline-run', params: { id: 'dtk_1' } }],
    [node('dtk_1', 'task', { name: 'import' }), null],
    [node('s', 'source'), null],
    [node('job_1', 'job', { exists: false }), null],
  ])('leads to its page: $id $kind', (one, wanted) => {
    expect(pageOf(one)).toEqual(wanted)
  })
})

describe('a lineage in words', () => {
  it('tells of every node what went into it and what came of it, and skips what is not there', () => {
    const nodes = [node('job_1', 'job'), node('file', 'source'), node('v', 'version')]
    const edges = [
      { source: 'file', target: 'v', role: 'imported' as const },
      { source: 'v', target: 'job_1', role: 'data' as const },
      { source: 'v', target: 'gone', role: 'data' as const },
    ]
    const groups = linesOf({ nodes, edges })
    expect(groups.map((group) => group.kind)).toEqual(['source', 'version', 'job'])
    expect(groups[1]?.lines[0]).toMatchObject({
      from: [{ role: 'imported' }],
      to: [{ node: { id: 'job_1' }, role: 'data' }],
    })
  })
})
