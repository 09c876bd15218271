import { afterEach, describe, expect, it } from 'vitest'

import { i18n } from '@/i18n'
import { mount } from '@/testing/withSetup'

import SystemCard from './SystemCard.vue'

const SERVICES = [
  { name: 'redis', state: 'running', restarts: 0, died_at: null, reason: null },
  { name: 'api', state: 'running', restarts: 2, died_at: 1_700_000_000, reason: 'it ended' },
  { name: 'worker', state: 'given_up', restarts: 6, died_at: 1_700_000_000, reason: 'it ended' },
]
const SUPERVISOR = { name: 'supervisor', health: 'down', message: 'Given up: worker.', age_s: 1, services: SERVICES }

describe('the state of the services', () => {
  afterEach(() => {
    i18n.global.locale.value = 'en'
  })

  it.each([
    ['en', 'Supervisor', 'api: restarted 2 times', 'worker: gave up after repeated crashes'],
    ['zh', '守护进程', 'api：已重新启动 2 次', 'worker：多次退出，已放弃'],
  ] as const)('tells what died in %s', (locale, title, restarted, lost) => {
    i18n.global.locale.value = locale

    const { root, end } = mount(SystemCard, { components: [SUPERVISOR], health: 'down' })

    expect(root.querySelector('[data-component=supervisor]')?.textContent).toContain(title)
    expect(root.querySelector('[data-service=api]')?.textContent).toContain(restarted)
    expect(root.querySelector('[data-service=api]')?.textContent).toContain('it ended')
    expect(root.querySelector('[data-service=worker]')?.textContent).toContain(lost)
    expect(root.querySelector('[data-service=redis]')).toBeNull()
    end()
  })
})
