/** What the nodes of a dataset's lineage lead to, and their order in words. */
import type { RouteLocationRaw } from 'vue-router'

import type { components } from '@/api/schema'

export type DataLineage = components['schemas']['DataLineageRead']
export type DataNode = components['schemas']['DataLineageNode']
export type DataEdge = components['schemas']['DataLineageEdge']

export const TONES = {
  source: 'sunken',
  dataset: 'sunken',
  version: 'plain',
  task: 'work',
  job: 'work',
  model: 'plain',
  evaluation: 'work',
  report: 'plain',
} as const

const KINDS = [
  'source',
  'dataset',
  'version',
  'task',
  'job',
  'model',
  'evaluation',
  'report',
] as const satisfies readonly DataNode['kind'][]

/** Pages of tasks by their kind, which is their name; an import has none. */
const TASK_PAGES: Readonly<Record<string, string>> = { pipeline: 'pipeline-run', generate: 'generation' }

/** The page of a node; null where there is none, or nothing any more. */
export function pageOf(node: DataNode): RouteLocationRaw | null {
  if (!node.exists) return null
  switch (node.kind) {
    case 'version':
      return node.dataset == null
        ? null
        : { name: 'dataset', params: { id: node.dataset }, query: { tab: 'versions', version: node.id } }
    case 'dataset':
    case 'job':
    case 'model':
    case 'evaluation':
    case 'report':
      return { name: node.kind, params: { id: node.id } }
    case 'task': {
      const page = TASK_PAGES[node.name ?? '']
      return page === undefined ? null : { name: page, params: { id: node.id } }
    }
    case 'source':
      return null
  }
}

export interface LineageLine {
  node: DataNode
  from: { node: DataNode; role: DataEdge['role'] }[]
  to: { node: DataNode; role: DataEdge['role'] }[]
}

/** Every node with what went into it and what came of it, kind by kind. */
export function linesOf({
  nodes,
  edges,
}: Pick<DataLineage, 'nodes' | 'edges'>): { kind: DataNode['kind']; lines: LineageLine[] }[] {
  const known = new Map(nodes.map((node) => [node.id, node]))
  const ends = (id: string, mine: 'source' | 'target', other: 'source' | 'target') =>
    edges
      .filter((edge) => edge[mine] === id)
      .flatMap((edge) => {
        const node = known.get(edge[other])
        return node === undefined ? [] : [{ node, role: edge.role }]
      })
  return KINDS.map((kind) => ({
    kind,
    lines: nodes
      .filter((node) => node.kind === kind)
      .map((node) => ({ node, from: ends(node.id, 'target', 'source'), to: ends(node.id, 'source', 'target') })),
  })).filter((group) => group.lines.length > 0)
}
