import { NMessageProvider } from 'naive-ui'
import { h } from 'vue'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { ChartLine } from './lines'
import { useTableFile } from './useTableFile'

const { saved } = vi.hoisted(() => ({ saved: [] as string[][] }))
vi.mock('@/composables/saveFile', () => ({ saveFile: (name: string, text: string) => saved.push([name, text]) }))

function line(steps: number[]): ChartLine {
  return { id: 'val/loss', label: 'a', curve: { steps, values: steps } }
}

async function save(readWhole?: () => Promise<ChartLine[]>): Promise<void> {
  let asked: Promise<void> | null = null
  const page = { setup: () => {
    const { saveTable } = useTableFile(() => ({ name: 'loss', lines: [line([1, 9])], readWhole }))
    asked = saveTable()
    return () => null
  } }
  const { end } = mount({ setup: () => () => h(NMessageProvider, () => h(page)) })
  await asked
  end()
}

describe('the values of a chart as a file', () => {
  afterEach(() => {
    saved.length = 0
  })

  it('are all of them, where those that are drawn are thinned out', async () => {
    await save(() => Promise.resolve([line([1, 2, 9])]))

    expect(saved).toEqual([['loss.csv', 'step,"val/loss"\n1,1\n2,2\n9,9\n']])
  })

  it('are those that are drawn, where there are no others', async () => {
    await save()

    expect(saved).toEqual([['loss.csv', 'step,"val/loss"\n1,1\n9,9\n']])
  })
})
