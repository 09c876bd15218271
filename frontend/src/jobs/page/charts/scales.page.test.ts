import { NMessageProvider } from 'naive-ui'
import { createPinia } from 'pinia'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'

import MetricChart from '@/charts/MetricChart.vue'
import type { YScale } from '@/charts/yScale'
import { mount, withSetup } from '@/testing/withSetup'

import { DASHBOARD_KEYS } from './dashboard'
import { useScales } from './scales'

const LOG = { isLog: true, low: '', high: '' }

async function page(address: string) {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push(address)
  return { router, ...withSetup(useScales, (app) => app.use(router)) }
}

function chart(scale: YScale, onScale: (scale: YScale) => void = () => undefined) {
  const props = { title: 'Loss', lines: [], scale, 'onUpdate:scale': onScale }
  return mount({ setup: () => () => h(NMessageProvider, () => h(MetricChart, props)) }, {}, (app) =>
    app.use(createPinia()),
  )
}

function logButton(root: HTMLElement): HTMLButtonElement {
  const button = root.querySelector<HTMLButtonElement>('button[aria-pressed]')
  if (button === null) throw new Error('the chart has no button for its scale')
  return button
}

describe('the y scale of a chart', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('is in the address, beside what is there, and gone from it when it is the usual one again', async () => {
    const { router, it: scales, end } = await page('/?smoothing=0.4')
    scales.setScale('loss', LOG)
    await new Promise((resolve) => setTimeout(resolve, 0))
    expect(router.currentRoute.value.query).toEqual({ smoothing: '0.4', scale: ['log,,,loss'] })
    expect([scales.scaleOf('loss').isLog, scales.scaleOf('reward').isLog]).toEqual([true, false])

    scales.setScale('loss', { ...LOG, isLog: false })
    await new Promise((resolve) => setTimeout(resolve, 0))

    expect(router.currentRoute.value.query).toEqual({ smoothing: '0.4' })
    end()
  })

  it('is part of a saved dashboard', () => {
    expect(DASHBOARD_KEYS).toContain('scale')
  })

  it('is told by the chart when the reader changes it, and drawn as the page says', async () => {
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
    const told: unknown[] = []
    const first = chart({ isLog: false, low: '', high: '2' }, (scale) => told.push(scale))
    logButton(first.root).click()
    await nextTick()
    first.end()
    expect(told).toEqual([{ isLog: true, low: '', high: '2' }])

    const second = chart(LOG)

    expect(logButton(second.root).getAttribute('aria-pressed')).toBe('true')
    second.end()
  })
})
