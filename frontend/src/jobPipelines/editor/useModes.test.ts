import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { effectScope, nextTick, reactive } from 'vue'

import type { DocumentChecked, JobPipelineCreate } from '../types'
import { emptyDraft } from './draft'
import { useModes } from './useModes'

const stage = (id: string, base: string) => ({
  id,
  title: id,
  kind: 'train',
  model: { base },
  recipe: 'sft',
  dataset: 'ds_1',
})
const content = (...stages: ReturnType<typeof stage>[]) =>
  ({ name: 'mine', description: '', stages }) as unknown as JobPipelineCreate
const WRONG: DocumentChecked = { document: null, problems: [] }

/** A platform that knows these texts, and finds something wrong with every other. */
function start(texts: Record<string, JobPipelineCreate> = {}) {
  const draft = reactive(emptyDraft())
  const scope = effectScope()
  const modes = scope.run(() =>
    useModes(draft, (yaml) => Promise.resolve(yaml in texts ? { document: texts[yaml] ?? null, problems: [] } : WRONG)),
  )
  if (modes === undefined) throw new Error('the scope has ended')
  const { written } = modes

  async function type(text: string, waitMs = 300): Promise<void> {
    written.value = text
    await nextTick()
    await vi.advanceTimersByTimeAsync(waitMs)
  }

  return {
    draft,
    modes,
    type,
    end: () => {
      scope.stop()
    },
  }
}

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('a pipeline as a form and as text', () => {
  it('is the same form after its text was only looked at', () => {
    const { draft, modes, end } = start()
    modes.begin(content(stage('a', 'mdl_1'), stage('b', 'mdl_1')))
    Object.assign(draft.stages[1] ?? {}, { isOptional: true, isIncluded: false, wants: 'Dialogs' })
    const before = JSON.stringify(draft)

    modes.setMode('yaml')
    expect(modes.written.value).not.toContain('id: b')
    expect(modes.canBeForm.value).toBe(true)
    modes.setMode('form')

    expect(modes.mode.value).toBe('form')
    expect(JSON.stringify(draft)).toBe(before)
    end()
  })

  it('becomes a form only with a text that was checked and fits', async () => {
    const { draft, modes, type, end } = start({
      good: content(stage('c', 'mdl_2')),
      unfit: content(stage('c', 'mdl_2'), stage('d', 'mdl_3')),
    })
    modes.begin(content(stage('a', 'mdl_1')))
    modes.setMode('yaml')

    await type('good', 100)
    expect([modes.canBeForm.value, modes.obstacle.value]).toEqual([false, null])
    await type('wrong')
    expect([modes.canBeForm.value, modes.obstacle.value]).toEqual([false, 'wrong'])
    await type('unfit')
    expect([modes.canBeForm.value, modes.obstacle.value]).toEqual([false, 'unfit'])
    modes.setMode('form')
    expect(modes.mode.value).toBe('yaml')

    await type('good')
    modes.setMode('form')
    expect([draft.baseModel, draft.stages.map((one) => one.id)]).toEqual(['mdl_2', ['c']])
    modes.setMode('yaml')
    expect(modes.written.value).toBe('good')
    end()
  })

  it('goes back to the form as it was with an empty text', async () => {
    const { draft, modes, type, end } = start()
    modes.begin(content(stage('a', 'mdl_1')))
    modes.setMode('yaml')
    const text = modes.written.value

    await type('')
    modes.setMode('form')
    expect(draft.stages.map((one) => one.id)).toEqual(['a'])
    modes.setMode('yaml')
    expect(modes.written.value).toBe(text)
    end()
  })

  it('begins as text where the form cannot hold what is copied', () => {
    const { draft, modes, end } = start()

    modes.begin(content(stage('a', 'mdl_1'), stage('b', 'mdl_2')))

    expect([modes.mode.value, modes.canBeForm.value, draft.stages]).toEqual(['yaml', false, []])
    expect(modes.written.value).toContain('base: mdl_2')
    end()
  })
})
