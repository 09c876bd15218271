/** What is visibly wrong with a run, in the order in which a person should read it. */
import type { ChartMark } from '@/charts/lines'
import type { Locale } from '@/i18n'

import type { Alarm } from '../types'

function weight(alarm: Alarm): number {
  return alarm.severity === 'critical' ? 0 : 1
}

/** Critical ones first, then those that began first. */
export function byUrgency(alarms: readonly Alarm[]): Alarm[] {
  return [...alarms].sort((a, b) => weight(a) - weight(b) || a.first_step - b.first_step)
}

export function activeAlarms(alarms: readonly Alarm[]): Alarm[] {
  return byUrgency(alarms.filter((alarm) => alarm.is_active))
}

/** Newest first: what was wrong and has cleared, or belongs to an attempt that was replaced. */
export function pastAlarms(alarms: readonly Alarm[]): Alarm[] {
  return alarms.filter((alarm) => !alarm.is_active).sort((a, b) => Date.parse(b.raised_at) - Date.parse(a.raised_at))
}

/**
 * Where the alarms of a metric stand in its chart. An alarm without a metric concerns the whole run: it is marked in
 * every chart.
 */
export function marksFor(alarms: readonly Alarm[], keys: readonly string[], language: Locale): ChartMark[] {
  return alarms
    .filter((alarm) => alarm.metric === null || keys.includes(alarm.metric))
    .map((alarm) => ({ step: alarm.first_step, label: alarm.title[language], isCritical: alarm.severity === 'critical' }))
}
