import { createMemoryHistory, createRouter } from 'vue-router'
import { createPinia } from 'pinia'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import PreviewPanel from './PreviewPanel.vue'

const GIB = 2 ** 30
const MEMORY = {
  peak_bytes: 90 * GIB,
  available_bytes: 80 * GIB,
  warnings: [{ en: 'too much', zh: '过多' }],
  phases: [],
  assumptions: [],
  parameters: 1,
}

function panel(preview: object, problems: object[] = [], onJump: (field: string) => void = () => undefined) {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  const props = {
    preview: {
      config: {},
      engine_overrides: [],
      command: '',
      forecast: null,
      memory: null,
      warnings: [],
      errors: [],
      ...preview,
    },
    request: null,
    error: null,
    isAsking: false,
    isStale: false,
    homeless: [],
    unreadableCount: 0,
    problems,
    onJump,
  }
  return mount(PreviewPanel, props, (app) => app.use(router).use(createPinia()))
}

const FORECAST = { steps: 10, start: { seconds: 0, jobs_ahead: 0, unknown: null }, disk: null }
const TIME = {
  seconds: 60,
  low_s: 40,
  high_s: 120,
  step_s: 6,
  rows_per_s: 1,
  slot_hours: 0.1,
  cost: null,
  runs: [],
  is_same_data: false,
}

describe('the time before a launch', () => {
  it.each([
    [{ ...TIME, basis: 'arithmetic', step_flops: 3.3e12, machine_flops: 1.2e11 }, '3.3 TFLOP per step at 120 GFLOP/s'],
    [
      { ...TIME, basis: 'scaled_runs', scaled_from_parameters: 134_515_008 },
      'from 0 runs of a model with 135M parameters',
    ],
    [null, 'unknown: no run of this recipe'],
  ])('says what it is based on', (time, text) => {
    const { root, end } = panel({ forecast: { ...FORECAST, time } })

    expect(root.querySelector('[data-test=forecast]')?.textContent).toContain(text)
    expect(root.querySelector('[data-test=forecast]')?.textContent).toContain('unknown: the model architecture')
    end()
  })
})

describe('the verdict of the preview', () => {
  it('is that a run will probably not fit, and not that it is ready', () => {
    const { root, end } = panel({ memory: MEMORY })

    expect(root.querySelector('.verdict')?.textContent?.trim()).toBe('Probably won’t fit in memory')
    expect(root.querySelector('.good')).toBeNull()
    end()
  })

  it('says so beside the errors of other fields', () => {
    const { root, end } = panel({ memory: MEMORY, errors: [{ code: 'a', field: 'params.lr', message: 'no' }] })

    expect(root.querySelector('.verdict')?.textContent).toContain('1 error')
    expect(root.querySelector('[data-test=no-fit]')).not.toBeNull()
    end()
  })

  it('is that it is ready where nothing is wrong', () => {
    const { root, end } = panel({})

    expect(root.querySelector('.verdict')?.textContent?.trim()).toBe('Ready to launch')
    end()
  })

  it('lists what is wrong, each a button that leads to its field', () => {
    const jumps: string[] = []
    const { root, end } = panel(
      {},
      [
        { field: 'params.lr', text: 'too large' },
        { field: 'model', text: 'gone' },
      ],
      (field) => jumps.push(field),
    )
    const buttons = [...root.querySelectorAll<HTMLButtonElement>('[data-test=problems] button')]
    for (const button of buttons) button.click()

    expect(buttons.map((button) => button.textContent)).toEqual(['params.lr too large', 'model gone'])
    expect(jumps).toEqual(['params.lr', 'model'])
    end()
  })
})
