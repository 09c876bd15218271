import { describe, expect, it } from 'vitest'

import type { Alarm } from '../types'
import { activeAlarms, marksFor, pastAlarms } from './alarms'

function alarmOf(code: string, part: Partial<Alarm> = {}): Alarm {
  return {
    code, severity: 'warning', attempt: 1, metric: null, step: 5, first_step: 5, last_step: 9, value: 1, threshold: null, example_id: null, is_active: true,
    title: { en: code, zh: code }, advice: { en: '', zh: '' }, raised_at: '2026-01-01T00:00:00Z', cleared_at: null, ...part,
  }
}

describe('the alarms of a run', () => {
  it('stand with the critical ones first, then as they began', () => {
    const alarms = [alarmOf('late', { first_step: 9 }), alarmOf('early'), alarmOf('nan', { severity: 'critical', first_step: 20 }), alarmOf('over', { is_active: false })]

    expect(activeAlarms(alarms).map((alarm) => alarm.code)).toEqual(['nan', 'early', 'late'])
    expect(pastAlarms(alarms).map((alarm) => alarm.code)).toEqual(['over'])
  })

  it('mark the chart of their metric, and all charts where they have none', () => {
    const alarms = [alarmOf('kl', { metric: 'actor/ppo_kl', severity: 'critical', first_step: 3 }), alarmOf('stalled', { first_step: 7 })]

    expect(marksFor(alarms, ['actor/ppo_kl'], 'en')).toEqual([
      { step: 3, label: 'kl', isCritical: true },
      { step: 7, label: 'stalled', isCritical: false },
    ])
    expect(marksFor(alarms, ['actor/entropy'], 'zh').map((mark) => mark.label)).toEqual(['stalled'])
  })
})
