/** Places a graph without rings from left (what was first) to right (what came of it). */

export interface GraphNode {
  id: string
}

export interface GraphEdge {
  source: string
  target: string
}

export const NODE = { width: 200, height: 52, gapX: 56, gapY: 16 } as const

export interface PlacedNode<N extends GraphNode> {
  node: N
  x: number
  y: number
}

export interface PlacedEdge<E extends GraphEdge> {
  edge: E
  path: string
}

export interface Drawing<N extends GraphNode, E extends GraphEdge> {
  nodes: PlacedNode<N>[]
  edges: PlacedEdge<E>[]
  width: number
  height: number
}

/** Column of every node: one further than the furthest of what went into it. A ring, which there cannot be, ends. */
function columnsOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, number> {
  const column = new Map(nodes.map((node) => [node.id, 0]))
  // As many rounds as the longest path can have; a ring would never settle.
  let round = 0
  let hasMoved = true
  while (hasMoved && round < nodes.length) {
    round += 1
    hasMoved = false
    for (const { source, target } of edges) {
      const wanted = (column.get(source) ?? 0) + 1
      if (column.has(target) && (column.get(target) ?? 0) < wanted) {
        column.set(target, wanted)
        hasMoved = true
      }
    }
  }
  // What nothing went into stands right before what it went into, not at the far left.
  for (const node of nodes) {
    if (edges.some((edge) => edge.target === node.id)) continue
    const next = edges.filter((edge) => edge.source === node.id).map((edge) => column.get(edge.target) ?? 1)
    if (next.length > 0) column.set(node.id, Math.max(0, Math.min(...next) - 1))
  }
  return column
}

export function drawGraph<N extends GraphNode, E extends GraphEdge>({ nodes, edges }: { nodes: readonly N[]; edges: readonly E[] }): Drawing<N, E> {
  const column = columnsOf(nodes, edges)
  const rowOf = new Map<string, number>()
  const last = Math.max(0, ...column.values())
  let tallest = 0
  for (let at = 0; at <= last; at++) {
    const here = nodes.filter((node) => column.get(node.id) === at)
    // Beside what went into it, so that lines cross little.
    const wish = (node: N): number => {
      const rows = edges.filter((edge) => edge.target === node.id).flatMap((edge) => rowOf.get(edge.source) ?? [])
      return rows.length === 0 ? Infinity : rows.reduce((sum, row) => sum + row, 0) / rows.length
    }
    const wishes = new Map(here.map((node) => [node.id, wish(node)]))
    const ordered = [...here].sort((a, b) => (wishes.get(a.id) ?? 0) - (wishes.get(b.id) ?? 0) || 0)
    ordered.forEach((node, row) => rowOf.set(node.id, row))
    tallest = Math.max(tallest, ordered.length)
  }
  const placeOf = (id: string) => ({
    x: (column.get(id) ?? 0) * (NODE.width + NODE.gapX),
    y: (rowOf.get(id) ?? 0) * (NODE.height + NODE.gapY),
  })
  const isKnown = (edge: E) => column.has(edge.source) && column.has(edge.target)
  return {
    nodes: nodes.map((node) => ({ node, ...placeOf(node.id) })),
    edges: edges.filter(isKnown).map((edge) => ({ edge, path: curve(placeOf(edge.source), placeOf(edge.target)) })),
    width: (last + 1) * NODE.width + last * NODE.gapX,
    height: tallest * NODE.height + Math.max(0, tallest - 1) * NODE.gapY,
  }
}

function curve(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const start = [from.x + NODE.width, from.y + NODE.height / 2] as const
  const end = [to.x, to.y + NODE.height / 2] as const
  const middle = (start[0] + end[0]) / 2
  return `M${start[0]} ${start[1]}C${middle} ${start[1]} ${middle} ${end[1]} ${end[0]} ${end[1]}`
}
