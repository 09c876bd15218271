import { describe, expect, it } from 'vitest'

import type { Alarm } from '../types'
import { activeAlarms, marksFor, marksOfRun, pastAlarms, placeOfExample } from './alarms'

function alarmOf(code: string, part: Partial<Alarm> = {}): Alarm {
  return {
    code,
    severity: 'warning',
    attempt: 1,
    metric: null,
    step: 5,
    first_step: 5,
    last_step: 9,
    value: 1,
    threshold: null,
    example_id: null,
    is_active: true,
    title: { en: code, zh: code },
    advice: { en: '', zh: '' },
    raised_at: '2026-01-01T00:00:00Z',
    cleared_at: null,
    ...part,
  }
}

const sayAttempt = (number: number) => `attempt ${number}`

describe('the alarms of a run', () => {
  it('stand with the critical ones first, then as they began', () => {
    const alarms = [
      alarmOf('late', { first_step: 9 }),
      alarmOf('early'),
      alarmOf('nan', { severity: 'critical', first_step: 20 }),
      alarmOf('over', { is_active: false }),
    ]

    expect(activeAlarms(alarms).map((alarm) => alarm.code)).toEqual(['nan', 'early', 'late'])
    expect(pastAlarms(alarms).map((alarm) => alarm.code)).toEqual(['over'])
  })

  it('lead to a response that shows them, of a trick that earns to the trick', () => {
    expect(placeOfExample(alarmOf('format_only', { example_id: 7 }))).toMatchObject({ rollout: 7, split: undefined })
    expect(placeOfExample(alarmOf('probe_earns', { example_id: 8 }))).toMatchObject({ rollout: 8, split: 'probe' })
  })

  it('mark the chart of their metric, and all charts where they have none', () => {
    const alarms = [
      alarmOf('kl', { metric: 'actor/ppo_kl', severity: 'critical', first_step: 3 }),
      alarmOf('stalled', { first_step: 7 }),
    ]

    expect(marksFor(alarms, ['actor/ppo_kl'], 'en', 1, sayAttempt)).toEqual([
      { step: 3, label: 'kl', isCritical: true },
      { step: 7, label: 'stalled', isCritical: false },
    ])
    expect(marksFor(alarms, ['actor/entropy'], 'zh', 1, sayAttempt).map((mark) => mark.label)).toEqual(['stalled'])
  })

  it('mark the charts after a resume, too, with their attempt', () => {
    const alarms = [
      alarmOf('nan', { metric: 'loss', attempt: 1 }),
      alarmOf('kl', { metric: 'loss', attempt: 2, first_step: 30 }),
    ]

    expect(marksFor(alarms, ['loss'], 'en', 2, sayAttempt).map((mark) => mark.label)).toEqual(['nan (attempt 1)', 'kl'])
  })

  it('mark the chart of their metric in a comparison, on the line of their run', () => {
    const job = {
      id: 'job_a',
      name: 'first',
      alarms: [alarmOf('nan', { metric: 'loss', severity: 'critical' }), alarmOf('stalled')],
    }

    expect(marksOfRun(job, 'loss', 'en', '#123456')).toEqual([
      { step: 5, label: 'first: nan', isCritical: true, line: 'job_a', color: '#123456' },
    ])
    expect(marksOfRun(job, 'entropy', 'en', undefined)).toEqual([])
  })
})
