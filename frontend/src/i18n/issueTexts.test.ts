import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { zhByIssue } from './issueTexts'

const ROOT = join(process.cwd(), '..')
const FOLDERS = [
  'recipes/trellis_recipes',
  'backend/trellis_api/jobs',
  'backend/trellis_api/rewards',
  'backend/trellis_api/evaluations',
  'backend/trellis_api/job_pipelines',
  'backend/trellis_api/sweeps',
  'backend/trellis_api/environments',
]
/** `Issue(code="…"`, `code="…",` on a line of its own, `findings.warn("…"`, and what the checks of orders yield. */
const SHAPES = [
  /\bcode="(\w+)"/g,
  /findings\.(?:error|warn)\(\s*"(\w+)"/g,
  /_give_up\("(\w+)"/g,
  /\b_issue\(\s*"(\w+)"/g,
  /\byield "(\w+_\w+)", "/g,
  /"code": "(\w+)", "field": f/g,
  /\("(\w+)", "[\w.]+", (?:message|obstacle)/g,
]

function codesOfChecks(): string[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      // Alarms have texts of their own.
      .filter((name) => name.endsWith('.py') && !name.startsWith('alarms'))
      .map((name) => readFileSync(join(ROOT, folder, name), 'utf8')),
  )
  const found = files.flatMap((text) =>
    SHAPES.flatMap((shape) => [...text.matchAll(shape)].map(([, code]) => code ?? '')),
  )
  return [...new Set(found)]
}

describe('what speaks against a request', () => {
  it('has a Chinese text for every code of the checks', () => {
    const codes = codesOfChecks()

    expect(codes.length).toBeGreaterThan(50)
    expect(codes.filter((code) => zhByIssue[code] === undefined)).toEqual([])
  })
})
