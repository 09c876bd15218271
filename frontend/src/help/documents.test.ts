import { describe, expect, it } from 'vitest'

import { DOCUMENTS, loadDocument, readDocument, toAnchor } from './documents'

describe('the documentation in the dashboard', () => {
  it('holds the documents of the repository, without that on its architecture', async () => {
    const names = DOCUMENTS.map(({ name }) => name)

    expect(names.slice(0, 2)).toEqual(['data', 'recipes'])
    expect(names).toContain('operations')
    expect(names).not.toContain('architecture')
    expect(await loadDocument('data')).toMatch(/^# Data/)
    expect(await loadDocument('../README')).toBeNull()
  })

  it('leads from one document to another, and nowhere else', () => {
    const text =
      '# Data\n\nSee [serving](serving.md#votes), [below](#import), [the web](https://example.com), [an example](../sdk/examples) and [a decision](adr/0001-x.md).\n\n## Import\n\n```\n## a comment [x](data.md)\n```\n'

    expect(readDocument(text, 'data')).toEqual({
      title: 'Data',
      body: '\nSee [serving](/help/serving#votes), [below](/help/data#import), [the web](https://example.com), an example and a decision.\n\n# Import\n\n```\n## a comment [x](data.md)\n```\n',
    })
  })

  it('finds headings as links name them', () => {
    expect(toAnchor('Push to a hub')).toBe('push-to-a-hub')
    expect(toAnchor('Your own `workflow`: how?')).toBe('your-own-workflow-how')
  })
})
