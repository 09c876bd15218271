import { describe, expect, it } from 'vitest'

import { checkpointArchive, modelArchive, modelFile, readableCard } from './card'

describe('a model card', () => {
  it('is shown without its front matter and marks', () => {
    const card =
      '---\nlicense: mit\ntrellis:\n  a: 1\n---\n\n<!-- trellis: checked -->\n\n# made\n\ntext\n\n<!-- /trellis -->\n'

    expect(readableCard(card)).toBe('# made\n\ntext')
  })

  it('keeps what people wrote around it', () => {
    expect(readableCard('---\na: 1\n---\n# made\n---\nmine')).toBe('# made\n---\nmine')
  })

  it('is downloaded with its model', () => {
    expect(modelArchive('mdl_1')).toBe('/api/v1/models/mdl_1/download')
    expect(modelFile('mdl_1', '1_Pooling/a b.json')).toBe('/api/v1/models/mdl_1/files/1_Pooling/a%20b.json')
    expect(checkpointArchive('job_1', 200)).toBe('/api/v1/jobs/job_1/checkpoints/200/download')
  })
})
