import { createMemoryHistory, createRouter } from 'vue-router'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import MarkdownView from './MarkdownView.vue'

function show(text: string) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/:rest(.*)*', component: { template: '' } }],
  })
  return mount(MarkdownView, { text }, (app) => app.use(router))
}

describe('a text in Markdown on the page', () => {
  it('has headings below those of the page, lists, emphasis and links', () => {
    const { root, end } = show(
      '# Why\n\nA **higher** rate, see [it](https://a.example) and [ours](/jobs/job_a)\n\n1. one\n2. two',
    )

    expect(root.querySelector('h3')?.textContent).toBe('Why')
    expect(root.querySelector('strong')?.textContent).toBe('higher')
    expect([...root.querySelectorAll('a')].map((link) => link.getAttribute('href'))).toEqual([
      'https://a.example',
      '/jobs/job_a',
    ])
    expect(root.querySelector('a')?.getAttribute('rel')).toContain('noopener')
    expect(root.querySelectorAll('ol > li')).toHaveLength(2)
    end()
  })

  it('shows markup as the text that it is', () => {
    const { root, end } = show('<img src=x onerror=alert(1)> **<b>x</b>**')

    expect(root.querySelector('img, b')).toBeNull()
    expect(root.textContent).toContain('<img src=x')
    end()
  })
})
