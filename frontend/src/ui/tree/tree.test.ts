import { describe, expect, it } from 'vitest'

import { overridePaths, treeRows, type TreeView } from './tree'

const data = { actor: { optim: { lr: 1e-6, name: 'adamw' }, layers: [1, 2] }, seed: 1, empty: {} }

function view(part: Partial<TreeView> = {}): TreeView {
  return { needle: '', opened: new Set(), set: null, onlySet: false, ...part }
}

function paths(part: Partial<TreeView>): string[] {
  return treeRows(data, view(part)).map((row) => row.path)
}

describe('a tree', () => {
  it('is folded to begin with', () => {
    expect(paths({})).toEqual(['actor', 'seed', 'empty'])
  })

  it('shows what is in an opened group', () => {
    expect(paths({ opened: new Set(['actor']) })).toEqual(['actor', 'actor.optim', 'actor.layers', 'seed', 'empty'])
  })

  it('narrowed by words shows the leaves that hold them all, with the groups above', () => {
    expect(paths({ needle: 'optim adamw' })).toEqual(['actor', 'actor.optim', 'actor.optim.name'])
  })

  it('narrowed to what was set leaves out the defaults', () => {
    expect(paths({ set: new Set(['actor.optim.lr', 'seed']), onlySet: true })).toEqual([
      'actor',
      'actor.optim',
      'actor.optim.lr',
      'seed',
    ])
  })

  it('counts what lies below a set group as set', () => {
    const rows = treeRows(data, view({ set: new Set(['actor.layers']), onlySet: true }))

    expect(rows.filter((row) => row.value !== null).map((row) => row.path)).toEqual([
      'actor.layers.0',
      'actor.layers.1',
    ])
  })

  it('shows empty groups as leaves', () => {
    expect(treeRows(data, view()).at(-1)).toMatchObject({ path: 'empty', value: '{}' })
  })
})

describe('the paths of override lines', () => {
  it('are what stands before the first equals sign', () => {
    expect([...overridePaths(['a.b=1', '+c.d="x=y"', '++e=[1,2]'])]).toEqual(['a.b', 'c.d', 'e'])
  })
})
