/** What one column's model answered to the prompts that all columns share. */
import { onScopeDispose, type Ref, reactive, watch } from 'vue'

import { type ApiError, asApiError } from '@/api/errors'

import { askModel, type Message } from './stream'
import { type Answer, type Endpoint, type Settings, textOf } from './types'

/** The API's word for a model that is still being loaded: it is asked again. */
const STARTING = 'endpoint_starting'
const AGAIN_MS = 1000

interface Context {
  model: Ref<string>
  prompts: Ref<readonly string[]>
  settings: Ref<Settings>
  /** Turns before the first prompt. */
  context: Ref<readonly Message[]>
  endpoint: Ref<Endpoint | undefined>
  start: (name: string) => Promise<void>
  explain: (error: ApiError) => string
}

export function useConversation({ model, prompts, settings, context, endpoint, start, explain }: Context) {
  const answers = reactive<Answer[]>([])
  let running: AbortController | null = null

  function messagesUpTo(index: number): Message[] {
    const { system } = settings.value
    const earlier = prompts.value.slice(0, index).flatMap((content, at): Message[] => {
      const answer = answers[at]
      return [{ role: 'user', content }, ...(answer === undefined ? [] : [{ role: 'assistant' as const, content: textOf(answer) }])]
    })
    return [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...context.value, ...earlier, { role: 'user', content: prompts.value[index] ?? '' }]
  }

  /** Resolves when the model answers; the column shows meanwhile what its endpoint does. */
  async function untilReady(signal: AbortSignal): Promise<void> {
    if (endpoint.value?.state === 'ready') return
    if (endpoint.value?.state !== 'starting') await start(model.value)
    await new Promise<void>((resolve, reject) => {
      const finish = (end: () => void) => {
        unwatch()
        signal.removeEventListener('abort', abort)
        end()
      }
      const abort = () => { finish(() => { reject(new DOMException('stopped', 'AbortError')) }) }
      const unwatch = watch(endpoint, (it) => {
        // What became of it is said by the answer to the request.
        if (it?.state !== 'starting' && it?.state !== 'stopping') finish(resolve)
      })
      signal.addEventListener('abort', abort)
    })
  }

  async function write(answer: Answer, index: number, signal: AbortSignal): Promise<void> {
    await untilReady(signal)
    for (;;) {
      try {
        for await (const piece of askModel(model.value, messagesUpTo(index), settings.value, signal)) {
          answer.state = 'writing'
          answer.tokens.push(...piece.tokens)
          answer.ending = piece.ending ?? answer.ending
        }
        return
      } catch (cause) {
        if (asApiError(cause).code !== STARTING) throw cause
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  /** Answer a prompt; what was said to it and after it before is forgotten. */
  async function answerTo(index: number): Promise<void> {
    running?.abort()
    const mine = new AbortController()
    running = mine
    answers.splice(index)
    answers.push({ state: 'loading', tokens: [], problem: null, ending: null, seconds: null })
    const answer = answers[index]
    if (answer === undefined) return
    const began = performance.now()
    try {
      await write(answer, index, mine.signal)
      answer.state = 'done'
    } catch (cause) {
      if (cause instanceof DOMException && cause.name === 'AbortError') {
        answer.state = 'stopped'
      } else {
        answer.problem = explain(asApiError(cause))
        answer.state = 'failed'
      }
    } finally {
      answer.seconds = (performance.now() - began) / 1000
      if (running === mine) running = null
    }
  }

  function halt(): void {
    running?.abort()
  }

  function clear(): void {
    halt()
    answers.splice(0)
  }

  watch(model, clear)
  onScopeDispose(halt)
  /** The newest answer with what it was given; null while there is none that is whole. */
  function newest(): { text: string; messages: Message[] } | null {
    const index = prompts.value.length - 1
    const answer = answers[index]
    return answer?.state === 'done' ? { text: textOf(answer), messages: messagesUpTo(index) } : null
  }

  return { answers, answerTo, halt, clear, newest }
}
