import { describe, expect, it } from 'vitest'

import { fractionOf, pageOf, REPOSITORY, targetOf, type Transfer } from './transfers'

function transfer(part: object): Transfer {
  return {
    kind: 'push',
    request: { repo_id: 'team/bot', revision: 'main' },
    result: null,
    progress: null,
    ...part,
  } as unknown as Transfer
}

describe('a transfer', () => {
  it('says where the model goes', () => {
    expect(targetOf(transfer({}))).toBe('team/bot')
    expect(targetOf(transfer({ request: { repo_id: 'team/bot', revision: 'v2' } }))).toBe('team/bot @ v2')
    const toModelScope = { hub: 'modelscope', repo_id: 'team/bot', revision: 'master' }
    expect(targetOf(transfer({ request: toModelScope }))).toBe('ModelScope: team/bot')
    expect(targetOf(transfer({ kind: 'gguf', request: { type: 'q8_0' } }))).toBe('GGUF q8_0')
    expect(targetOf(transfer({ kind: 'gguf', request: { type: 'q8_0' }, result: { file: 'bot.q8_0.gguf' } }))).toBe(
      'bot.q8_0.gguf',
    )
  })

  it('links to a page of the web and to nothing else', () => {
    expect(pageOf(transfer({ result: { url: 'https://hub/team/bot/tree/main' } }))).toBe(
      'https://hub/team/bot/tree/main',
    )
    expect(pageOf(transfer({ result: { url: 'javascript:alert(1)' } }))).toBeNull()
    expect(pageOf(transfer({}))).toBeNull()
  })

  it('knows how far it is where the size is known', () => {
    expect(fractionOf(transfer({ progress: { done_bytes: 1, total_bytes: 4, file: null } }))).toBe(0.25)
    expect(fractionOf(transfer({}))).toBeNull()
  })

  it('takes repositories with an owner', () => {
    expect(['team/bot', 'bot', '../x/y', 'a/b/c'].map((name) => REPOSITORY.test(name))).toEqual([
      true,
      false,
      false,
      false,
    ])
  })
})
