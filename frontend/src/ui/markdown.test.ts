import { describe, expect, it } from 'vitest'

import { isSafeAddress, parseMarkdown, readInline } from './markdown'

describe('Markdown', () => {
  it('is read into headings, paragraphs, lists, quotes, code and tables', () => {
    const text =
      '# Why\n\nA **higher** rate:\n- `1e-4`\n- 2e-4\n  1. nested\n\n> so far\n\n```\nx = *1*\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---'

    const blocks = parseMarkdown(text)

    expect(blocks.map((block) => block.kind)).toEqual([
      'heading',
      'paragraph',
      'list',
      'quote',
      'code',
      'table',
      'rule',
    ])
    expect(blocks[2]).toMatchObject({
      isOrdered: false,
      items: [
        [{ parts: [{ kind: 'code', text: '1e-4' }] }],
        [{ kind: 'paragraph' }, { kind: 'list', isOrdered: true }],
      ],
    })
    expect(blocks[4]).toEqual({ kind: 'code', text: 'x = *1*' })
    expect(blocks[5]).toMatchObject({
      head: [[{ text: 'a' }], [{ text: 'b' }]],
      rows: [[[{ text: '1' }], [{ text: '2' }]]],
    })
  })

  it('keeps the underscores of names and lone marks', () => {
    expect(readInline('total_steps and max_len_b')).toEqual([{ kind: 'text', text: 'total_steps and max_len_b' }])
    expect(readInline('2 * 3 * 4')).toEqual([{ kind: 'text', text: '2 * 3 * 4' }])
    expect(readInline('\\*not\\*')).toEqual([{ kind: 'text', text: '*not*' }])
  })

  it('links to the web and into the dashboard, and nowhere else', () => {
    expect(readInline('[a](https://a.example/x)')).toEqual([
      { kind: 'link', href: 'https://a.example/x', parts: [{ kind: 'text', text: 'a' }] },
    ])
    expect(readInline('see https://a.example/x.')[1]).toMatchObject({ kind: 'link', href: 'https://a.example/x' })
    expect(readInline('[a](javascript:alert(1))').some((part) => part.kind === 'link')).toBe(false)
    expect(['/jobs/job_1', 'http://a'].every(isSafeAddress)).toBe(true)
    expect(['//a.example', '/\\a', 'javascript:x', 'data:text/html,x', ' jobs'].some(isSafeAddress)).toBe(false)
  })

  it('leaves HTML as it was written', () => {
    expect(parseMarkdown('<script>x</script>')).toEqual([
      { kind: 'paragraph', parts: [{ kind: 'text', text: '<script>x</script>' }] },
    ])
  })

  it('ends for every text, however deep', () => {
    expect(parseMarkdown(`${'>'.repeat(5000)} x`)).toHaveLength(1)
    expect(parseMarkdown(`${'- '.repeat(5000)}x`).length).toBeGreaterThan(0)
    expect(readInline('*'.repeat(5000)).length).toBeGreaterThan(0)
  })

  it('reads headings with closing signs, and tables with spaces around their bars', () => {
    expect(parseMarkdown('##  a # b ## \n# #\n#x')).toEqual([
      { kind: 'heading', level: 2, parts: [{ kind: 'text', text: 'a # b' }] },
      { kind: 'heading', level: 1, parts: [] },
      { kind: 'paragraph', parts: [{ kind: 'text', text: '#x' }] },
    ])
    expect(parseMarkdown(' a | b \n :-- |  --: |')[0]).toMatchObject({ kind: 'table', rows: [] })
    expect(parseMarkdown('a | b\n-- || --').map((block) => block.kind)).toEqual(['paragraph'])
  })

  it.each([
    ['heading', '# a', 'x'],
    ['closed heading', '# a', '#x'],
    ['indented table rule', 'a | b\n', 'x'],
    ['table rule', 'a | b\n--', 'x'],
    ['item', '- ', 'x\u2028y'],
    ['rule', '---', 'x'],
  ])('reads a line with many spaces at once: %s', (_, before, after) => {
    const started = performance.now()

    parseMarkdown(before + ' '.repeat(50_000) + after)

    expect(performance.now() - started).toBeLessThan(1000)
  })
})
