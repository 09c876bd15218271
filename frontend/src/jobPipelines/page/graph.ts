/** Stages as a graph: which lines stand between them, which one is shown first, and where the arrow keys lead. */
import { drawGraph, type GraphEdge } from '@/ui/graph/layout'

import type { Stage } from '../types'

export interface StageEdge extends GraphEdge {
  /** The later stage starts from the model of the earlier one; otherwise it only waits for it. */
  isModel: boolean
}

type Linked = Pick<Stage, 'id' | 'needs' | 'request'>

export function edgesOf(stages: readonly Linked[]): StageEdge[] {
  return stages.flatMap((stage) =>
    stage.needs.map((need) => ({ source: need, target: stage.id, isModel: stage.request.model.stage === need })),
  )
}

/** What failed, else what runs, else the first that waits, else the last: what a person comes to look at. */
export function stageOfInterest<S extends Pick<Stage, 'state'>>(stages: readonly S[]): S | null {
  for (const state of ['failed', 'running', 'stopped', 'waiting'] as const) {
    const found = stages.find((stage) => stage.state === state)
    if (found !== undefined) return found
  }
  return stages.at(-1) ?? null
}

/** The stage that an arrow key leads to from another; null where there is none on that side. */
export function towards(stages: readonly Linked[], from: string, key: string): string | null {
  const { nodes } = drawGraph({ nodes: stages, edges: edgesOf(stages) })
  const here = nodes.find(({ node }) => node.id === from)
  if (here === undefined) return null
  const side: Readonly<Record<string, (x: number, y: number) => boolean>> = {
    ArrowRight: (x) => x > here.x,
    ArrowLeft: (x) => x < here.x,
    ArrowDown: (x, y) => x === here.x && y > here.y,
    ArrowUp: (x, y) => x === here.x && y < here.y,
  }
  const isThere = side[key]
  if (isThere === undefined) return null
  const distance = ({ x, y }: { x: number; y: number }) => Math.abs(x - here.x) * 1000 + Math.abs(y - here.y)
  const found = nodes.filter(({ x, y }) => isThere(x, y)).sort((a, b) => distance(a) - distance(b))
  return found[0]?.node.id ?? null
}
