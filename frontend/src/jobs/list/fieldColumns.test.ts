import { describe, expect, it } from 'vitest'

import {
  arrange,
  isField,
  metricField,
  MOST_FIELDS,
  parseColumns,
  readField,
  serialise,
  shownIn,
  sortOf,
} from './columns'
import { toQuery } from './useJobList'
import { nextOrder, readView, writeView } from './view'

const LOSS = 'metrics.at.100.val/loss'

describe('parameters and metrics as columns', () => {
  it('are read as what they show', () => {
    expect(readField('parameters.learning_rate')).toEqual({ parameter: 'learning_rate' })
    expect(readField('metrics.last.val-core/a.b/mean@1')).toEqual({
      key: 'val-core/a.b/mean@1',
      end: 'last',
      step: null,
    })
    expect(readField(LOSS)).toEqual({ key: 'val/loss', end: 'at', step: 100 })
    expect(metricField('val/loss', 'at', 100)).toBe(LOSS)
    expect(metricField('val/loss', 'best', 100)).toBe('metrics.best.val/loss')
  })

  it('follow the own columns in the order in which they were chosen, and are bounded', () => {
    expect(arrange([LOSS, 'created', 'parameters.seed', LOSS, 'state'])).toEqual([
      'state',
      'created',
      LOSS,
      'parameters.seed',
    ])
    expect(arrange(Array.from({ length: 20 }, (_, place) => `metrics.last.${place}`))).toHaveLength(MOST_FIELDS)
  })

  it('come back from the address, also where a metric has a comma in its name', () => {
    const columns = ['state', 'parameters.lora_rank', 'metrics.last.score (a,b)'] as const

    expect(parseColumns(serialise(columns))).toEqual(columns)
    expect(parseColumns('parameters.,metrics.first.x,metrics.at.x.y,parameters.a')).toEqual(['parameters.a'])
  })

  it('sort on the server, the greatest first', () => {
    const view = { ...readView({}), ...nextOrder(readView({}), LOSS) }

    expect(sortOf(LOSS)).toBe(LOSS)
    expect(readView(JSON.parse(JSON.stringify(writeView(view))))).toMatchObject({ sort: LOSS, isRising: false })
    expect(toQuery(view, ['state', LOSS])).toMatchObject({ sort: LOSS, order: 'desc', fields: [LOSS] })
    expect(toQuery(view).fields).toBeUndefined()
  })

  it('begin at A where they are words, and turn round when chosen again', () => {
    const words = nextOrder(readView({}), 'parameters.loss_type', ['sigmoid', null, undefined, 'hinge'])

    expect(words.isRising).toBe(true)
    expect(nextOrder(words, 'parameters.loss_type', ['sigmoid']).isRising).toBe(false)
    expect(nextOrder(readView({}), 'parameters.lora_rank', [8, null]).isRising).toBe(false)
    expect(nextOrder(readView({}), 'parameters.loss_type', [null]).isRising).toBe(false)
  })

  it('are those of trainings', () => {
    expect(isField('created')).toBe(false)
    expect(shownIn(['state', LOSS, 'curve'], false, true)).toEqual(['state'])
    expect(shownIn(['state', LOSS, 'curve'], true, true)).toEqual(['state', LOSS, 'curve'])
  })
})
