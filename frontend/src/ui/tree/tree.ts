/** Nested data as rows of a tree: opened by hand, or narrowed to what is looked for. */

export interface TreeRow {
  /** Dotted, as the engine's keys are. */
  path: string
  name: string
  depth: number
  /** Text of a leaf; null for a group. */
  value: string | null
  childCount: number
  isOpen: boolean
  /** Set by this job rather than by the engine's defaults. */
  isSet: boolean
}

export interface TreeView {
  /** Words that path or value must hold; empty for all. */
  needle: string
  opened: ReadonlySet<string>
  /** Paths that were set; null when that is not known. */
  set: ReadonlySet<string> | null
  onlySet: boolean
}

function isGroup(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

function leafText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
}

/** Paths of an engine's override lines: `+a.b=1` → `a.b`. */
export function overridePaths(lines: readonly string[]): Set<string> {
  return new Set(lines.map((line) => line.replace(/^\+{0,2}|=.*$/gs, '')))
}

export function treeRows(data: unknown, view: TreeView): TreeRow[] {
  const words = view.needle
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const isNarrowed = words.length > 0 || (view.onlySet && view.set !== null)

  function matches(path: string, value: unknown, isSet: boolean): boolean {
    if (view.onlySet && view.set !== null && !isSet) return false
    const text = `${path} ${leafText(value)}`.toLowerCase()
    return words.every((word) => text.includes(word))
  }

  function walk(
    node: Record<string, unknown> | unknown[],
    prefix: string,
    depth: number,
    isAboveSet: boolean,
  ): TreeRow[] {
    return Object.entries(node).flatMap(([name, value]): TreeRow[] => {
      const path = prefix === '' ? name : `${prefix}.${name}`
      const isSet = isAboveSet || (view.set?.has(path) ?? false)
      if (!isGroup(value)) {
        if (isNarrowed && !matches(path, value, isSet)) return []
        return [{ path, name, depth, value: leafText(value), childCount: 0, isOpen: false, isSet }]
      }
      const isOpen = isNarrowed || view.opened.has(path)
      const below = isOpen ? walk(value, path, depth + 1, isSet) : []
      if (isNarrowed && below.length === 0) return []
      return [{ path, name, depth, value: null, childCount: Object.keys(value).length, isOpen, isSet }, ...below]
    })
  }

  return isGroup(data) ? walk(data, '', 0, false) : []
}
