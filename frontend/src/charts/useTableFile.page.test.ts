import { NMessageProvider } from 'naive-ui'
import { h } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import type { ChartLine } from './lines'
import { useTableFile } from './useTableFile'

/** What the browser was handed to save: names and texts. */
const saved: string[][] = []
let texts: Blob[] = []
let givenBack: string[] = []

function line(steps: number[]): ChartLine {
  return { id: 'val/loss', label: 'a', curve: { steps, values: steps } }
}

function read(text: Blob): Promise<string> {
  return new Promise((resolve) => {
    const reader = new FileReader()
    reader.onload = () => {
      resolve(reader.result as string)
    }
    reader.readAsText(text)
  })
}

async function save(readWhole?: () => Promise<ChartLine[]>): Promise<void> {
  let asked: Promise<void> | null = null
  const page = {
    setup: () => {
      const { saveTable } = useTableFile(() => ({ name: 'loss', lines: [line([1, 9])], readWhole }))
      asked = saveTable()
      return () => null
    },
  }
  const { end } = mount({ setup: () => () => h(NMessageProvider, () => h(page)) })
  await asked
  await Promise.all(texts.map(async (text, at) => saved[at]?.push(await read(text))))
  // The address of a file is given back one turn after the click: before the stand-in for it is taken away.
  await vi.waitFor(() => {
    expect(givenBack).toHaveLength(texts.length)
  })
  end()
}

describe('the values of a chart as a file', () => {
  // jsdom makes no addresses of files, and follows none.
  beforeEach(() => {
    saved.length = 0
    texts = []
    givenBack = []
    vi.stubGlobal(
      'URL',
      Object.assign(class extends URL {}, {
        createObjectURL: (text: Blob) => `blob:${String(texts.push(text))}`,
        revokeObjectURL: (address: string) => givenBack.push(address),
      }),
    )
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      saved.push([this.download])
    })
  })

  afterEach(() => {
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
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
