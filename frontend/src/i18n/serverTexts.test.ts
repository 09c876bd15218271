import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { toChinese } from './serverTexts'

const SOURCES = ['measurements.py', 'probes.py'].map((name) => readFileSync(join(process.cwd(), '..', 'backend/trellis_api/monitoring', name), 'utf8')).join('\n')

/** Every sentence about a component, with something for what it leaves open. */
function sentences(): string[] {
  const plain = [...SOURCES.matchAll(/(?:Measurement\(\s*ComponentHealth\.\w+, |message = )f?"((?:[^"\\])+)"/g)].map(([, text]) => text ?? '')
  return plain
    .filter((text) => !text.includes('{message}') && text.endsWith('.'))
    .map((text) => text.replace("{count} worker{'s' if count > 1 else ''}", '2 workers').replace(/\{[^}]*\}/g, '7'))
}

describe('sentences of the server', () => {
  it('are all known in Chinese where they tell of a component', () => {
    const found = sentences()

    expect(found.length).toBeGreaterThan(15)
    expect(found.filter((text) => toChinese(text) === text)).toEqual([])
  })
  it('keep names and numbers', () => {
    expect(toChinese('Connected (Ray 2.60.0). 1 node with 0 GPUs.')).toBe('已连接（Ray 2.60.0）。1 个节点，0 个 GPU。')
    expect(toChinese('Import rows.jsonl')).toBe('导入 rows.jsonl')
    expect(toChinese('my own words')).toBe('my own words')
  })
})
