import { describe, expect, it } from 'vitest'

import type { LineageEdge, LineageNode } from '../types'
import { drawLineage, NODE } from './layout'

function nodeOf(id: string, kind: LineageNode['kind']): LineageNode {
  return { id, kind, name: id, exists: true, recipe: null, state: null, form: null, sha256: null }
}

function edgeOf(source: string, target: string, role: LineageEdge['role']): LineageEdge {
  return { source, target, role, step: null }
}

const nodes = [nodeOf('base', 'model'), nodeOf('rows', 'dataset'), nodeOf('sft', 'job'), nodeOf('tuned', 'model'), nodeOf('prompts', 'dataset'), nodeOf('grpo', 'job')]
const edges = [
  edgeOf('base', 'sft', 'base'), edgeOf('rows', 'sft', 'data'), edgeOf('sft', 'tuned', 'checkpoint'),
  edgeOf('tuned', 'grpo', 'base'), edgeOf('prompts', 'grpo', 'data'),
]

function columnOf(id: string): number {
  const placed = drawLineage({ nodes, edges }).nodes.find((one) => one.node.id === id)
  return (placed?.x ?? -1) / (NODE.width + NODE.gapX)
}

describe('the drawing of a lineage', () => {
  it('goes from what was first to what came of it', () => {
    expect(['base', 'sft', 'tuned', 'grpo'].map(columnOf)).toEqual([0, 1, 2, 3])
  })

  it('puts a dataset right before the job that learned from it', () => {
    expect(columnOf('rows')).toBe(0)
    expect(columnOf('prompts')).toBe(2)
  })

  it('gives every node a place of its own', () => {
    const places = drawLineage({ nodes, edges }).nodes.map(({ x, y }) => `${x} ${y}`)

    expect(new Set(places).size).toBe(nodes.length)
  })

  it('leaves out a line to something that is not there, and ends with a ring', () => {
    expect(drawLineage({ nodes, edges: [edgeOf('base', 'gone', 'base')] }).edges).toEqual([])
    expect(drawLineage({ nodes, edges: [edgeOf('base', 'sft', 'base'), edgeOf('sft', 'base', 'base')] }).nodes).toHaveLength(nodes.length)
  })
})
