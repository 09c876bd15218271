import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { toChinese } from './serverTexts'

const SOURCES = ['measurements.py', 'probes.py']
  .map((name) => readFileSync(join(process.cwd(), '..', 'backend/trellis_api/monitoring', name), 'utf8'))
  .join('\n')

/** Every sentence about a component, with something for what it leaves open. */
function sentences(): string[] {
  const plain = [...SOURCES.matchAll(/(?:Measurement\(\s*ComponentHealth\.\w+, |message = )f?"((?:[^"\\])+)"/g)].map(
    ([, text]) => text ?? '',
  )
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
  it('are known where they tell how a sweep or its runs ended', () => {
    const texts = [
      'backend/trellis_api/sweeps/advance.py',
      'backend/trellis_api/sweeps/measuring.py',
      'workers/trellis_workers/jobs/reconcile.py',
      'workers/trellis_workers/jobs/silence.py',
      'workers/trellis_workers/jobs/advance_sweeps.py',
    ]
      .map((name) => readFileSync(join(process.cwd(), '..', name), 'utf8'))
      .join('\n')
      .replace(/"\n\s+f?"/g, '')
    const found = [
      ...texts.matchAll(/(?:reason = |reason=|_UNEXPECTED = |_abort\(state, \w+, |return \(\n\s+)f?"((?:[^"\\])+)"/g),
    ].map(([, text]) => (text ?? '').replace('{found}', '2 hours').replace(/\{[^}]*\}/g, '7'))

    expect(found.length).toBeGreaterThanOrEqual(9)
    expect(found.filter((text) => toChinese(text) === text)).toEqual([])
  })
  it('are told to the end where one holds another', () => {
    expect(
      toChinese(
        'The first 3 runs failed; the last one: The run stopped reporting, and the Ray cluster cannot be reached.',
      ),
    ).toBe('前 3 次运行均失败，最后一次：运行不再报告，并且无法连接 Ray 集群。')
    expect(toChinese("A run has finished without 'val/loss'. It reported: nothing.")).toBe(
      '有运行结束时没有报告 val/loss，也没有报告任何指标。',
    )
  })
  it('keep names and numbers', () => {
    expect(toChinese('Connected (Ray 2.60.0). 1 node with 0 GPUs.')).toBe('已连接（Ray 2.60.0）。1 个节点，0 个 GPU。')
    expect(toChinese('Import rows.jsonl')).toBe('导入 rows.jsonl')
    expect(toChinese('my own words')).toBe('my own words')
  })
})
