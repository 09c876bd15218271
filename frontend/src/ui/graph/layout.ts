/** Places a graph without rings from left (what was first) to right (what came of it), or from top to bottom. */

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

/** Boxes side by side that can be read on a phone. */
const MOST_ACROSS = 2

/** What a narrow place needs: the direction that takes less width, and what stands side by side in short rows. */
export function drawNarrow<N extends GraphNode, E extends GraphEdge>(graph: {
  nodes: readonly N[]
  edges: readonly E[]
}): Drawing<N, E> {
  const across = drawGraph(graph)
  const down = drawGraph({ ...graph, isDown: true, mostAcross: MOST_ACROSS })
  return down.width < across.width ? down : across
}

export function drawGraph<N extends GraphNode, E extends GraphEdge>({
  nodes,
  edges,
  isDown = false,
  mostAcross = Infinity,
}: {
  nodes: readonly N[]
  edges: readonly E[]
  isDown?: boolean
  /** Where it runs down: longer rows are broken. */
  mostAcross?: number
}): Drawing<N, E> {
  const column = columnsOf(nodes, edges)
  const rowOf = new Map<string, number>()
  /** As the column, with one more for each break of a row before it. */
  const lineOf = new Map<string, number>()
  const last = Math.max(0, ...column.values())
  let tallest = 0
  let lines = 0
  for (let at = 0; at <= last; at++) {
    const here = nodes.filter((node) => column.get(node.id) === at)
    // Beside what went into it, so that lines cross little.
    const wish = (node: N): number => {
      const rows = edges.filter((edge) => edge.target === node.id).flatMap((edge) => rowOf.get(edge.source) ?? [])
      return rows.length === 0 ? Infinity : rows.reduce((sum, row) => sum + row, 0) / rows.length
    }
    const wishes = new Map(here.map((node) => [node.id, wish(node)]))
    const ordered = [...here].sort((a, b) => (wishes.get(a.id) ?? 0) - (wishes.get(b.id) ?? 0) || 0)
    ordered.forEach((node, row) => {
      rowOf.set(node.id, row % mostAcross)
      lineOf.set(node.id, lines + Math.floor(row / mostAcross))
    })
    tallest = Math.max(tallest, Math.min(ordered.length, mostAcross))
    lines += Math.max(1, Math.ceil(ordered.length / mostAcross))
  }
  // Lines need the wider gap, whichever way they run.
  const gap = isDown ? { x: NODE.gapY, y: NODE.gapX } : { x: NODE.gapX, y: NODE.gapY }
  const placeOf = (id: string) => {
    const [across, down] = isDown ? [rowOf.get(id), lineOf.get(id)] : [lineOf.get(id), rowOf.get(id)]
    return { x: (across ?? 0) * (NODE.width + gap.x), y: (down ?? 0) * (NODE.height + gap.y) }
  }
  const [wide, high] = isDown ? [tallest, lines] : [lines, tallest]
  const isKnown = (edge: E) => column.has(edge.source) && column.has(edge.target)
  return {
    nodes: nodes.map((node) => ({ node, ...placeOf(node.id) })),
    edges: edges
      .filter(isKnown)
      .map((edge) => ({ edge, path: curve(placeOf(edge.source), placeOf(edge.target), isDown) })),
    width: wide * NODE.width + Math.max(0, wide - 1) * gap.x,
    height: high * NODE.height + Math.max(0, high - 1) * gap.y,
  }
}

function curve(from: { x: number; y: number }, to: { x: number; y: number }, isDown: boolean): string {
  if (isDown) {
    const [x, y] = [from.x + NODE.width / 2, from.y + NODE.height]
    const endX = to.x + NODE.width / 2
    const middle = (y + to.y) / 2
    return `M${x} ${y}C${x} ${middle} ${endX} ${middle} ${endX} ${to.y}`
  }
  const start = [from.x + NODE.width, from.y + NODE.height / 2] as const
  const end = [to.x, to.y + NODE.height / 2] as const
  const middle = (start[0] + end[0]) / 2
  return `M${start[0]} ${start[1]}C${middle} ${start[1]} ${middle} ${end[1]} ${end[0]} ${end[1]}`
}
