import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { fillIn, zhByCode } from './apiErrors'

const BACKEND = join(process.cwd(), '..', 'backend', 'trellis_api')

function backendCodes(): string[] {
  const files = readdirSync(BACKEND, { recursive: true, encoding: 'utf8' })
    // Only running jobs talk to ingest.
    .filter((name) => name.endsWith('errors.py') && !name.startsWith('ingest'))
  const codes = files.flatMap((name) =>
    [...readFileSync(join(BACKEND, name), 'utf8').matchAll(/^ +code(?:: ClassVar\[str\])? = "(\w+)"/gm)].map(
      ([, code]) => code ?? '',
    ),
  )
  return [...new Set(codes)]
}

describe('the errors of the API', () => {
  it('all have a Chinese text', () => {
    const codes = backendCodes()

    expect(codes.length).toBeGreaterThan(20)
    expect(codes.filter((code) => zhByCode[code] === undefined)).toEqual([])
  })

  it('take fields of their details into the text, or none of it', () => {
    expect(fillIn('已有名为“{name}”的模型。', { name: 'starter' })).toBe('已有名为“starter”的模型。')
    expect(fillIn('已有名为“{name}”的模型。', {})).toBeNull()
  })
})
