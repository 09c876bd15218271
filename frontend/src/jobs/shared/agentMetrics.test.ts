import { describe, expect, it } from 'vitest'

import en from '../locales/en'
import { agentKeys, agentMetric } from './agentMetrics'
import { metricUnit } from './metricCatalogue'

describe('the metrics of an agent', () => {
  it('stand together, the telling ones first', () => {
    const reported = [
      'actor/entropy',
      'agent/turns/mean',
      'baseline/accuracy',
      'eval/accuracy',
      'train/loss',
      'agent/own/mean',
    ]

    expect(agentKeys(reported)).toEqual([
      'baseline/accuracy',
      'eval/accuracy',
      'agent/turns/mean',
      'agent/own/mean',
      'train/loss',
    ])
  })

  it('hold the rows of a run that chooses them', () => {
    expect(agentKeys(['loss', 'data/replayed_rows', 'data/rows'])).toEqual(['data/rows', 'data/replayed_rows'])
  })

  it('are none where a run trains no agent', () => {
    expect(agentKeys(['train/loss', 'eval/loss', 'train/lr'])).toEqual([])
  })

  it.each([
    ['eval/accuracy', 'accuracy', null],
    ['accuracy', null, null],
    ['eval/avg_turns', 'turns', 'turns'],
    ['eval/first_hit_turn', 'firstHit', 'turns'],
    ['agent/sampled_tokens/mean', 'sampledTokens', 'tokens'],
    ['agent/episode_s/mean', 'episodeTime', 'seconds'],
    ['agent/calls/mean', 'calls', 'calls'],
    ['baseline/bm25/recall@10', 'recall', null],
    ['eval/mrr@10', 'mrr', null],
    ['agent/own/mean', null, null],
    ['data/rows/timing_decision', 'rowsTiming', 'rows'],
    ['data/left_out_rows', 'leftOutRows', 'rows'],
  ])('%s', (key, name, unit) => {
    expect(agentMetric(key)?.name ?? null).toBe(name)
    expect(metricUnit(key)).toBe(unit)
  })

  it('have a title and a help each', () => {
    const keys = [
      'eval/accuracy',
      'eval/avg_score',
      'eval/avg_reward',
      'eval/avg_hits',
      'eval/avg_strategy',
      'eval/avg_turns',
      'agent/first_hit_turn/mean',
      'agent/tokens/mean',
      'agent/sampled_tokens/mean',
      'train/policy_loss',
      'agent/calls/mean',
      'agent/call_errors/mean',
      'agent/episode_s/mean',
      'agent/answered/mean',
      'agent/malformed/mean',
      'eval/recall@1',
      'eval/mrr@10',
      'agent/workflow_error/mean',
      'agent/missing_calls/mean',
      'data/rows',
      'data/rows/tool_selection',
      'data/rows/multi_step_planning',
      'data/rows/timing_decision',
      'data/rows/tool_retrieval',
      'data/dataset_rows',
      'data/left_out_rows',
      'data/replayed_rows',
    ]

    expect(keys.map((key) => agentMetric(key)?.name)).toEqual(Object.keys(en.agentMetric))
  })
})
