import { describe, expect, it } from 'vitest'

import { drawGraph, drawNarrow, type GraphEdge, type GraphNode, NODE } from './layout'

function nodeOf(id: string): GraphNode {
  return { id }
}

function edgeOf(source: string, target: string): GraphEdge {
  return { source, target }
}

const nodes = [nodeOf('base'), nodeOf('rows'), nodeOf('sft'), nodeOf('tuned'), nodeOf('prompts'), nodeOf('grpo')]
const edges = [
  edgeOf('base', 'sft'),
  edgeOf('rows', 'sft'),
  edgeOf('sft', 'tuned'),
  edgeOf('tuned', 'grpo'),
  edgeOf('prompts', 'grpo'),
]

function columnOf(id: string): number {
  const placed = drawGraph({ nodes, edges }).nodes.find((one) => one.node.id === id)
  return (placed?.x ?? -1) / (NODE.width + NODE.gapX)
}

describe('the drawing of a graph', () => {
  it('goes from what was first to what came of it', () => {
    expect(['base', 'sft', 'tuned', 'grpo'].map(columnOf)).toEqual([0, 1, 2, 3])
  })

  it('puts a dataset right before the job that learned from it', () => {
    expect(columnOf('rows')).toBe(0)
    expect(columnOf('prompts')).toBe(2)
  })

  it('gives every node a place of its own', () => {
    const places = drawGraph({ nodes, edges }).nodes.map(({ x, y }) => `${x} ${y}`)

    expect(new Set(places).size).toBe(nodes.length)
  })

  it('breaks rows that a phone cannot show, and keeps the order', () => {
    const leaves = ['a', 'b', 'c', 'd', 'e'].map(nodeOf)
    const graph = {
      nodes: [nodeOf('root'), ...leaves, nodeOf('end')],
      edges: [...leaves.map((leaf) => edgeOf('root', leaf.id)), edgeOf('e', 'end')],
    }
    const narrow = drawNarrow(graph)
    const places = narrow.nodes.map(({ x, y }) => [x / (NODE.width + NODE.gapY), y / (NODE.height + NODE.gapX)])

    expect(narrow.width).toBe(2 * NODE.width + NODE.gapY)
    expect(places).toEqual([
      [0, 0],
      [0, 1],
      [1, 1],
      [0, 2],
      [1, 2],
      [0, 3],
      [0, 4],
    ])
    expect(narrow.height).toBe(5 * NODE.height + 4 * NODE.gapX)
  })

  it('leaves out a line to something that is not there, and ends with a ring', () => {
    expect(drawGraph({ nodes, edges: [edgeOf('base', 'gone')] }).edges).toEqual([])
    expect(drawGraph({ nodes, edges: [edgeOf('base', 'sft'), edgeOf('sft', 'base')] }).nodes).toHaveLength(nodes.length)
  })
})
