import { describe, expect, it } from 'vitest'

import type { ImportedScript } from '../../types'
import { emptyDraft, overrideRow, toRequest } from '../draft'
import { applyScript } from './apply'

const found: ImportedScript = {
  program: 'verl.trainer.main_ppo',
  recipe: 'grpo',
  name: 'first',
  gpus: 4,
  model: '~/models/small',
  dataset: null,
  validation_dataset: null,
  params: { group_size: 8, learning_rate: 1e-6 },
  overrides: { 'data.shuffle': false, 'data.truncation': 'left', 'actor_rollout_ref.actor.optim.betas': [0.9, 0.95] },
  left_out: [],
  problems: [],
}

describe('a script in the launch form', () => {
  it('sets parameters, overrides and GPUs, and asks for exactly these', () => {
    const draft = {
      ...emptyDraft(),
      recipe: 'grpo',
      model: 'mdl_a',
      dataset: 'ds_a',
      overrides: [overrideRow('trainer.x', '1')],
    }

    applyScript(draft, found)

    const request = toRequest(draft, 'fallback')
    expect(request).toMatchObject({
      name: 'first',
      params: found.params,
      overrides: found.overrides,
      resources: { gpus: 4 },
    })
    expect([request.model, request.dataset]).toEqual(['mdl_a', 'ds_a'])
    expect(request.overrides).not.toHaveProperty('trainer.x')
  })

  it('leaves a name that was given', () => {
    const draft = { ...emptyDraft(), name: 'mine' }

    applyScript(draft, found)

    expect(draft.name).toBe('mine')
  })
})
