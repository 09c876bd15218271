import { nextTick } from 'vue'
import { afterEach, describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import RecipeDialog from './RecipeDialog.vue'

const recipe = (id: string, family: string, formats: string[]) => ({
  id,
  family,
  title: { en: id, zh: id },
  description: { en: id, zh: id },
  paper: null,
  is_experimental: false,
  data_formats: formats,
})
const recipes = [
  recipe('grpo', 'rl', ['messages', 'prompt-answer']),
  recipe('sft', 'supervised', ['messages', 'preference']),
  recipe('orpo', 'preference', ['preference']),
  recipe('dpo', 'preference', ['preference']),
]
let end = (): void => undefined
afterEach(() => {
  end()
  // A dialog takes its time to leave.
  document.body.replaceChildren()
})

async function open(dataFormat: string | null): Promise<void> {
  end = mount(RecipeDialog, { recipes, current: 'grpo', dataFormat, show: true }).end
  await nextTick()
}

function idsIn(part: Element | null | undefined): string[] {
  return [...(part?.querySelectorAll<HTMLElement>('[data-recipe]') ?? [])].map((card) => card.dataset.recipe ?? '')
}

describe('the choice of a recipe', () => {
  it('begins with those that suit the dataset', async () => {
    await open('preference')
    const first = document.querySelector('[data-test=recipe-dialog] section')

    expect(first?.querySelector('h3')?.textContent).toBe('Suits your data')
    expect(first?.textContent).toContain('preference pairs')
    expect(idsIn(first)).toEqual(['dpo', 'orpo'])
    expect(idsIn(document.querySelector('[data-test=recipe-dialog]'))).toHaveLength(2 + recipes.length)
  })

  it('is by family alone where there is no dataset yet', async () => {
    await open(null)

    expect(document.querySelector('[data-test=suited]')).toBeNull()
  })

  it('is by family alone while one is searched for', async () => {
    await open('preference')
    const search = document.querySelector<HTMLInputElement>('[data-test=recipe-dialog] input')
    if (search !== null) search.value = 'dpo'
    search?.dispatchEvent(new Event('input'))

    await vi.waitFor(() => expect(document.querySelector('[data-test=suited]')).toBeNull())
    expect(idsIn(document.querySelector('[data-test=recipe-dialog]'))).toEqual(['dpo'])
  })
})
