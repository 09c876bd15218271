import { afterEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'

import { answer, answering } from '@/testing/platform'
import { withSetup } from '@/testing/withSetup'

import type { Pipeline } from '../types'
import { useEditor } from './useEditor'

function pipelineOf(operator: string): Pipeline {
  return {
    name: 'Tidy',
    description: '',
    format: 'messages',
    columns: {},
    seed: 7,
    tokenizer: null,
    steps: [{ operator, params: {} }],
  }
}

const SAVED = { id: 'pip_1', name: 'Tidy', description: '', version: 2, pipeline: pipelineOf('html') }

async function open(id: string | null, address: string) {
  answering('GET', ({ path, parts }) => {
    if (path.endsWith('/versions'))
      return answer(200, {
        items: [
          { number: 2, pipeline: SAVED.pipeline },
          { number: 1, pipeline: pipelineOf('urls') },
        ],
      })
    return parts.task_id === undefined ? answer(200, SAVED) : answer(200, { pipeline: pipelineOf('quality') })
  })
  answering('POST', () => answer(201, { ...SAVED, version: 3 }))
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  await router.push(address)
  const { it: editor, end } = withSetup(
    () => useEditor(() => id),
    (app) => app.use(router),
  )
  await vi.waitFor(() => {
    expect(editor.isLoading.value).toBe(false)
  })
  return { editor, end, operators: () => editor.draft.steps.map((step) => step.operator) }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('the pipeline that is edited', () => {
  it('is the newest version of what is kept', async () => {
    const { editor, operators, end } = await open('pip_1', '/')

    expect([operators(), editor.version.value, editor.isDirty.value]).toEqual([['html'], 2, false])
    end()
  })

  it('is the version that the address names, unchanged', async () => {
    const { editor, operators, end } = await open('pip_1', '/?pipelineVersion=1')

    expect([operators(), editor.version.value, editor.saved.value?.version, editor.isDirty.value]).toEqual([
      ['urls'],
      1,
      2,
      false,
    ])
    end()
  })

  it('says when there is no such version', async () => {
    const { editor, end } = await open('pip_1', '/?pipelineVersion=9')

    expect(editor.loadError.value?.code).toBe('pipeline_version_not_found')
    end()
  })

  it('is all of what a run was of, where that is not kept', async () => {
    const { editor, operators, end } = await open(null, '/?run=dtk_1')

    expect([operators(), editor.draft.format, editor.draft.seed, editor.saved.value]).toEqual([
      ['quality'],
      'messages',
      7,
      null,
    ])
    end()
  })

  it('is the newest version once it is kept', async () => {
    const { editor, end } = await open('pip_1', '/?pipelineVersion=1')

    await editor.save({ name: 'Tidy', description: '', message: '', isNew: false })

    expect([editor.version.value, editor.saved.value?.version, editor.isDirty.value]).toEqual([3, 3, false])
    end()
  })
})
