import { NMessageProvider } from 'naive-ui'
import { createMemoryHistory, createRouter } from 'vue-router'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { defineComponent, h } from 'vue'

import { answer, answering } from '@/testing/platform'
import { mount } from '@/testing/withSetup'

import type { Sweep } from '../types'
import { useBestCheckpoint } from './useBestCheckpoint'

const SWEEP = { objective: { metric: 'val/loss', mode: 'min' } } as Sweep

function open(page: object) {
  const asked: unknown[] = []
  answering('GET', ({ query }) => {
    asked.push(query)
    return answer(200, page)
  })
  const router = createRouter({
    history: createMemoryHistory(),
    routes: ['job', 'evaluation-new'].map((name) => ({ path: `/${name}/:id?`, name, component: { template: '' } })),
  })
  let actions: ReturnType<typeof useBestCheckpoint> | null = null
  const user = defineComponent(() => {
    actions = useBestCheckpoint()
    return () => null
  })
  const { end } = mount(
    defineComponent(() => () => h(NMessageProvider, () => h(user))),
    {},
    (app) => app.use(router),
  )
  if (actions === null) throw new Error('the setup did not run')
  return { asked, router, end, actions: actions as ReturnType<typeof useBestCheckpoint> }
}

afterEach(() => vi.restoreAllMocks())

describe('the best run of a sweep', () => {
  it('is exported at the step with the best value of the metric', async () => {
    const { actions, router, asked, end } = open({ best: { step: 40 }, items: [{ step: 60, can_export: true }] })
    await actions.exportIt('job_a', SWEEP)

    expect(asked).toEqual([{ best_by: 'val/loss', mode: 'min' }])
    expect(router.currentRoute.value.fullPath).toBe('/job/job_a?tab=checkpoints&export=40')
    end()
  })

  it('is evaluated at the newest checkpoint with weights where none was measured', async () => {
    const { actions, router, end } = open({
      best: null,
      items: [
        { step: 60, can_export: false },
        { step: 50, can_export: true },
      ],
    })
    await actions.evaluate('job_a', SWEEP)

    expect(router.currentRoute.value.fullPath).toBe('/evaluation-new?job=job_a&step=50')
    end()
  })

  it('says so where no checkpoint was kept', async () => {
    const { actions, router, end } = open({ best: null, items: [] })
    await actions.exportIt('job_a', SWEEP)

    await vi.waitFor(() => {
      expect(document.body.textContent).toContain('The best run has no checkpoint.')
    })
    expect(router.currentRoute.value.fullPath).toBe('/')
    end()
  })
})
