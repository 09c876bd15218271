import { createMemoryHistory, createRouter, type Router } from 'vue-router'
import { afterEach, describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { useChosenInAddress, useSmoothing } from './smoothing'

async function page(
  address: string,
): Promise<{ router: Router; smoothing: ReturnType<typeof useSmoothing>; end: () => void }> {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { template: '' } }] })
  await router.push(address)
  const { it: smoothing, end } = withSetup(
    () => {
      useChosenInAddress()
      return useSmoothing()
    },
    (app) => app.use(router),
  )
  return { router, smoothing, end }
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0))
}

describe('the smoothing in the address', () => {
  afterEach(() => {
    localStorage.clear()
  })

  it('is there even where none was chosen, because a reader of the link may have another', async () => {
    const { router, smoothing, end } = await page('/?smoothing=0.4')
    smoothing.value = 0
    await settle()

    expect(router.currentRoute.value.query).toEqual({ smoothing: '0' })
    end()
  })

  it('is put there where it was chosen on an earlier visit', async () => {
    const first = await page('/')
    expect(first.router.currentRoute.value.query).toEqual({})
    first.smoothing.value = 0.7
    await settle()
    first.end()

    const { router, end } = await page('/')
    await settle()

    expect(router.currentRoute.value.query).toEqual({ smoothing: '0.7' })
    end()
  })
})
