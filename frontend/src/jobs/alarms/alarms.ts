/** What is visibly wrong with a run, in the order in which a person should read it. */
import type { ChartMark } from '@/charts/lines'
import type { Locale } from '@/i18n'

import type { Alarm, Job } from '../types'

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

function toMark(alarm: Alarm, label: string): ChartMark {
  return { step: alarm.first_step, label, isCritical: alarm.severity === 'critical' }
}

/**
 * Where the alarms of a metric stand in its chart. An alarm without a metric concerns the whole run: it is marked in
 * every chart. Those of an earlier attempt than `attempt` name theirs: its curve may have been replaced.
 */
export function marksFor(
  alarms: readonly Alarm[],
  keys: readonly string[],
  language: Locale,
  attempt: number,
  sayAttempt: (number: number) => string,
): ChartMark[] {
  return alarms
    .filter((alarm) => alarm.metric === null || keys.includes(alarm.metric))
    .map((alarm) =>
      toMark(
        alarm,
        alarm.attempt === attempt ? alarm.title[language] : `${alarm.title[language]} (${sayAttempt(alarm.attempt)})`,
      ),
    )
}

/** In a chart of several runs: the alarms of its metric alone, because those of whole runs would stand in all charts. */
export function marksOfRun(
  job: Pick<Job, 'id' | 'name' | 'alarms'>,
  key: string,
  language: Locale,
  color: string | undefined,
): ChartMark[] {
  return job.alarms
    .filter((alarm) => alarm.metric === key)
    .map((alarm) => ({ ...toMark(alarm, `${job.name}: ${alarm.title[language]}`), line: job.id, color }))
}

/** Where the response stands that shows what an alarm is about. */
export function placeOfExample(alarm: Alarm) {
  // A trick that earns is shown itself, and not what the policy wrote.
  const split = alarm.code === 'probe_earns' ? 'probe' : undefined
  return { tab: 'rollouts', view: 'prompts', split, step: undefined, prompt: undefined, rollout: alarm.example_id }
}
