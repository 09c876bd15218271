import { ref } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { MAX_CHARTS, moveKey, useDashboard } from './dashboard'

describe('the order of charts', () => {
  it('moves a chart and stops at the ends', () => {
    expect(moveKey(['a', 'b', 'c'], 'c', -1)).toEqual(['a', 'c', 'b'])
    expect(moveKey(['a', 'b', 'c'], 'a', 1)).toEqual(['b', 'a', 'c'])
    expect(moveKey(['a', 'b', 'c'], 'a', -1)).toEqual(['a', 'b', 'c'])
    expect(moveKey(['a', 'b', 'c'], 'c', 1)).toEqual(['a', 'b', 'c'])
    expect(moveKey(['a'], 'gone', 1)).toEqual(['a'])
  })
})

describe("a reader's own charts", () => {
  async function page(address: string, reported: string[], shown: string[]) {
    const router = createRouter({
      history: createMemoryHistory(),
      routes: [{ path: '/', component: { template: '' } }],
    })
    await router.push(address)
    const { it: dashboard, end } = withSetup(
      () => useDashboard(ref(reported), ref(shown)),
      (app) => app.use(router),
    )
    return { router, dashboard, end }
  }

  async function settle(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0))
  }

  it('are those of the address, in its order, as far as the run reports them', async () => {
    const { dashboard, end } = await page('/?only=loss&only=gone&only=acc&only=loss', ['acc', 'loss'], [])

    expect(dashboard.chosen.value).toEqual(['loss', 'acc'])
    expect(dashboard.isOwn.value).toBe(true)
    end()
  })

  it('begin with what is shown when the first one is moved, removed or added', async () => {
    for (const [change, only] of [
      [
        (d: ReturnType<typeof useDashboard>) => {
          d.move('b', -1)
        },
        ['b', 'a'],
      ],
      [
        (d: ReturnType<typeof useDashboard>) => {
          d.remove('a')
        },
        ['b'],
      ],
      [
        (d: ReturnType<typeof useDashboard>) => {
          d.add(['c', 'a'])
        },
        ['a', 'b', 'c'],
      ],
    ] as const) {
      const { router, dashboard, end } = await page('/?tab=charts&match=x', ['a', 'b', 'c'], ['a', 'b'])
      change(dashboard)
      await settle()
      expect(router.currentRoute.value.query).toEqual({ tab: 'charts', only: only })
      end()
    }
  })

  it('keep charts of metrics that the run has not reported yet', async () => {
    const { router, dashboard, end } = await page('/?only=a&only=later&only=b', ['a', 'b', 'c'], ['a', 'b'])
    expect(dashboard.chosen.value).toEqual(['a', 'b'])
    dashboard.move('b', -1)
    await settle()
    expect(router.currentRoute.value.query.only).toEqual(['b', 'a', 'later'])
    dashboard.add(['c'])
    await settle()
    expect(router.currentRoute.value.query.only).toEqual(['a', 'later', 'b', 'c'])
    end()
  })

  it('are the usual ones again when the last is removed, and bounded', async () => {
    const { router, dashboard, end } = await page('/?only=a', ['a'], ['a'])
    dashboard.remove('a')
    await settle()
    expect(router.currentRoute.value.query).toEqual({})
    dashboard.add(Array.from({ length: 100 }, (_, index) => `m${index}`))
    await settle()
    expect(router.currentRoute.value.query.only).toHaveLength(MAX_CHARTS)
    end()
  })
})
