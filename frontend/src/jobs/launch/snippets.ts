/** The request for scripts: JSON, YAML and cURL. */
import { toYaml } from '@/ui/tree/yaml'

import type { JobCreate } from '../types'

export type SnippetKind = 'curl' | 'json' | 'yaml'

/** What says nothing: defaults that the API fills in anyway. */
function essential(request: JobCreate): Partial<JobCreate> {
  const isIdle = (key: string, value: unknown) =>
    value === null ||
    (key === 'priority' && value === 0) ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(request).filter(([key, value]) => !isIdle(key, value)))
}

export function snippet(kind: SnippetKind, request: JobCreate, origin: string): string {
  const body = essential(request)
  if (kind === 'yaml') return toYaml(body)
  const json = JSON.stringify(body, null, 2)
  if (kind === 'json') return `${json}\n`
  // A quoted here-document: nothing in the request can end the quotation or be expanded by the shell.
  return [
    `curl -sS -X POST ${origin}/api/v1/jobs \\`,
    '  -H "Authorization: Bearer $(cat data/admin.token)" \\',
    "  -H 'Content-Type: application/json' \\",
    "  --data-binary @- <<'JSON'",
    json,
    'JSON',
    '',
  ].join('\n')
}
