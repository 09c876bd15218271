import { NMessageProvider } from 'naive-ui'
import { describe, expect, it } from 'vitest'
import { h } from 'vue'

import { mount } from '@/testing/withSetup'

import EndpointStatus from './EndpointStatus.vue'
import type { Endpoint } from './types'

const READY = {
  id: 'ep_1',
  name: 'job_1:3',
  state: 'ready',
  state_since: '2026-01-01T00:00:00Z',
  idle_timeout_s: 600,
  max_model_len: 512,
  failure: null,
  can_stop: true,
  sharing_refusal: null,
}

function show(changes: Partial<Endpoint>): string {
  const endpoint = { ...READY, ...changes }
  const done = (): Promise<void> => Promise.resolve()
  const page = {
    setup: () => () =>
      h(NMessageProvider, () =>
        h(EndpointStatus, {
          endpoint: endpoint as unknown as Endpoint,
          canStart: true,
          start: done,
          stop: done,
          setPreemptible: done,
        }),
      ),
  }
  const { root, end } = mount(page)
  const text = root.querySelector('[data-test=endpoint]')?.textContent ?? ''
  end()
  return text
}

describe('the status of an endpoint', () => {
  it('says why an adapter has an engine of its own', () => {
    expect(
      show({ sharing_refusal: { reason: 'unsupported target modules', retry_at: '2026-01-02T00:00:00Z' } }),
    ).toContain("base model's engine couldn't load it: unsupported target modules")
    expect(show({})).not.toContain('engine')
  })

  it('says which training it makes room for, and can be kept from that where it takes a slot', () => {
    const training = { id: 'job_1', name: 'big' }
    expect(show({ state: 'stopping', preempted_by: training })).toContain('Stopping to make room for job big.')
    expect(show({ state: 'stopped', stopped_by: 'training', preempted_by: { ...training, name: null } })).toContain(
      'Stopped to make room for job job_1.',
    )
    expect(show({ slots: 1, preemptible: true })).toContain('Keep running')
    expect(show({ slots: 0, preemptible: true, shares_engine_of: { id: 'mdl_1', name: 'base' } })).not.toContain(
      'Keep running',
    )
  })

  it('says which endpoint it makes room for, and can be kept from that on a CPU, too', () => {
    const other = { id: 'ep_2', name: 'third' }
    expect(show({ state: 'stopping', preempted_by: other })).toContain('Stopping to make room for endpoint third.')
    expect(show({ state: 'stopped', stopped_by: 'endpoint', preempted_by: other })).toContain(
      'Stopped to make room for endpoint third.',
    )
    expect(show({ slots: 0, preemptible: true })).toContain('Keep running')
  })

  it('says that a newer checkpoint took over its engine', () => {
    expect(show({ state: 'stopped', stopped_by: 'replaced' })).toContain(
      'Its engine took the weights of a newer checkpoint.',
    )
  })

  it('says how its requests ended, once there was one', () => {
    const none = {
      since: '2026-01-01T00:00:00Z',
      answered: 0,
      refused: 0,
      not_ready: 0,
      stopped: 0,
      timed_out: 0,
      lost: 0,
      broken_off: 0,
    }
    expect(show({ requests: { ...none, answered: 12, timed_out: 1, lost: 2 } })).toMatch(
      /Requests since .+: 12 answered, 1 timed out, 2 lost/,
    )
    expect(show({ requests: none })).not.toContain('Requests')
  })

  it('says what its engine is at, and nothing before that was measured', () => {
    const load = {
      measured_at: '2026-01-01T00:00:00Z',
      running: 2,
      waiting: 1,
      kv_use: 0.25,
      window_s: 60,
      requests: 9,
      prompt_tokens_per_s: 80,
      generated_tokens_per_s: 41.5,
      first_token_mean_s: 0.31,
      first_token_p95_s: 0.48,
    }
    expect(show({ load })).toContain(
      '2 running, 1 waiting · 41.5 tokens/s · first token 0.31 s (p95 0.48 s) · KV cache 25%',
    )
    expect(show({ load: { ...load, first_token_mean_s: null, first_token_p95_s: null } })).toContain(
      '41.5 tokens/s · KV cache',
    )
    expect(show({ load: null })).not.toContain('tokens/s')
  })
})
