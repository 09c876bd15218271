/** Runs composables and components in tests as a page would: in an app with the texts. */
import { type App, type Component, createApp, h } from 'vue'

import { i18n } from '@/i18n'

export interface Mounted<T> {
  it: T
  root: HTMLElement
  end: () => void
}

/** `setup` runs as that of a component; plugins of the page, such as a router, are added by `prepare`. */
export function withSetup<T>(setup: () => T, prepare: (app: App) => void = () => undefined): Mounted<T> {
  let made: { it: T } | null = null
  const mounted = mount(
    {
      setup: () => {
        made = { it: setup() }
        return () => null
      },
    },
    {},
    prepare,
  )
  if (made === null) throw new Error('the setup did not run')
  return { ...mounted, it: (made as { it: T }).it }
}

/** A component on the page of the test; `props` takes listeners as `onName`, too. */
export function mount(
  component: Component,
  props: Record<string, unknown> = {},
  prepare: (app: App) => void = () => undefined,
): Mounted<App> {
  const root = document.createElement('div')
  document.body.append(root)
  const app = createApp({ render: () => h(component, props) })
  app.use(i18n)
  prepare(app)
  app.mount(root)
  return {
    it: app,
    root,
    end: () => {
      app.unmount()
      root.remove()
    },
  }
}
